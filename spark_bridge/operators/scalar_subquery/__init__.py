"""Scalar subqueries: rows with the single values of uncorrelated subqueries.

single_values                              makes joins with one row of such subqueries
scalar_subquery_form                       one operator of neighbouring projections, filters and such joins
scalar_subquery_cut ── scalar_subquery_plan   that operator out of a query, and its plan
scalar_subquery_operator                   its rows, and those that change with the rows or with the values
"""
