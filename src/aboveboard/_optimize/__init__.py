"""Optimisation that several areas share: sparse linear and integer programs."""
