"""Google's dp-accounting and autodp on the same mechanisms; run in an environment of its own."""

import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant


def poisson(orders, multipliers, rates):
    """Return the divergences of one sampled Gaussian release, by mechanism and order."""
    found = []
    for multiplier, rate in zip(multipliers, rates):
        accountant = RdpAccountant(orders.tolist())
        event = dp_event.PoissonSampledDpEvent(float(rate), dp_event.GaussianDpEvent(float(multiplier)))
        found.append(accountant.compose(event)._rdp)
    return {"values": np.array(found)}


def without_replacement(orders, multipliers, sizes, n):
    """Return the divergences of one release from a sample of fixed size, by mechanism and order."""
    found = []
    for multiplier, size in zip(multipliers, sizes):
        accountant = RdpAccountant(orders.tolist(), NeighboringRelation.REPLACE_ONE)
        event = dp_event.SampledWithoutReplacementDpEvent(n, int(size), dp_event.GaussianDpEvent(float(multiplier)))
        found.append(accountant.compose(event)._rdp)
    return {"values": np.array(found)}


def composition(orders, multiplier, steps, delta):
    """Return the epsilon of composed Gaussian releases, by number of steps: by Rényi orders, and by privacy losses."""
    by_order, by_loss = [], []
    for count in steps.astype(int).tolist():
        event = dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(multiplier), count)
        by_order.append(RdpAccountant(orders.tolist()).compose(event).get_epsilon(delta))
        by_loss.append(PLDAccountant().compose(event).get_epsilon(delta))
    return {"rdp": np.array(by_order), "pld": np.array(by_loss)}


def autodp_without_replacement(multiplier, rate, steps, delta):
    """Return what autodp's accountant says of the same steps of samples without replacement."""
    from autodp import rdp_acct, rdp_bank

    found = []
    for count in steps.astype(int).tolist():
        accountant = rdp_acct.anaRDPacct()
        accountant.compose_subsampled_mechanism(
            lambda order: rdp_bank.RDP_gaussian({"sigma": multiplier}, order), rate, coeff=count
        )
        found.append(float(accountant.get_eps(delta)))
    return {"epsilon": np.array(found)}
