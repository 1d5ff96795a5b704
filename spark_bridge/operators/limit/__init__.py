"""Limits: the first rows in an order, for the whole view or for each key.

`limited_rows` keeps the first rows and some spare rows between epochs, and reads the rows below again when too many of
them have left.
"""
