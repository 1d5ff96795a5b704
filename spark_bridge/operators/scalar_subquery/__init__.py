"""Scalar subqueries: rows with the single values of uncorrelated subqueries.

single_values                   makes joins with one row of such subqueries
scalar_subquery_form            one operator of the projections, filters and such joins that follow each other
scalar_subquery_rows            its rows, and those that change with the rows or with the values
"""
