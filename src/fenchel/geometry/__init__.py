"""Geometries: norms, potentials and their steps, one family a file.

Import the members from their modules; ``PRIMAL`` and ``DUAL`` in ``fenchel.geometry.registry``
list them by name.
"""
