"""The execution of analysed plans over an epoch's rows, if possible without planning and without a job.

    leaves                puts an epoch's rows under an analysed plan
    compiled_rows         runs projections and filters over a few rows, without planning or a job
    driver_plan           runs a physical plan over a few rows in the driver's thread, without a job
    planned_once          runs any query over one leaf, without planning: as compiled rows, or by a plan made once
    row_chain             the compiled code and the plan as one call into the JVM

Invariant: the result is the same in each of these ways.
"""
