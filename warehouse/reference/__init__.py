"""The reference engine: what views answer, in plain Python, slow and obvious; the oracle for the real ones.

:mod:`.snapshot` is the definition. :mod:`.tuples` and :mod:`.changes` are rows and event lists; the operators read and emit
event lists. Nothing here reads a clock or a file.

>>> from warehouse.reference.changes import answer, arrivals
>>> from warehouse.reference.joins import join
>>> from warehouse.reference.tuples import Row
>>> left = arrivals([Row("a1", ("a",), 1, 11), Row("b3", ("b",), 3, 13)])
>>> right = arrivals([Row("a4", ("a",), 4, 14)])
>>> [row.id for row in answer(join(left, right), 4)], answer(join(left, right), 11)
([('a1', 'a4')], [])
"""
