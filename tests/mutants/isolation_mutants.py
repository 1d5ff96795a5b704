"""Deliberate faults in the isolation of views: an error of one view that stops others, or the reverse."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_ISOLATED = "tests/spark_bridge/test_isolated_views.py"
_JOBS, _ERRORS = "spark_bridge/engine/session/spark_jobs.py", "spark_bridge/engine/session/spark_errors.py"
_POLICY, _POLICIES = "actors/recovery/recovery_policy.py", "tests/actors/recovery/test_recovery_policy.py"
_ANSI = "tests/spark_bridge/maintenance/test_ansi_corrections.py"
_SOURCES, _SOURCE_TESTS = (
    "spark_bridge/plans/function_source.py",
    "tests/spark_bridge/plans/test_function_source.py",
)
_VALUES = f"{_SOURCE_TESTS}::test_a_changed_value_is_another_view_and_an_equal_one_is_not"

ISOLATION_MUTANTS = (
    Mutant(
        "a row with the words of a full disk ends the run",
        _ERRORS,
        (("    return any(map(_is_of_full_disk, causes))\n", "    return _NO_ROOM in str(error)\n"),),
        shown_by="tests/spark_bridge/engine/session/test_spark_jobs.py::test_words_in_a_row_do_not_end_the_run",
    ),
    Mutant(
        "the source of a wrapper is the source of the wrapped function",
        _SOURCES,
        (("inspect.getsource(code if isinstance(code, type) else code.__code__)", "inspect.getsource(code)"),),
        shown_by=f"{_VALUES}[the code of a wrapper that keeps the wrapped function]",
    ),
    Mutant(
        "lambdas of one line are one function",
        _SOURCES,
        (('if isinstance(code, FunctionType) and code.__name__ == "<lambda>" and is_one_of_several:', "if False:"),),
        shown_by=f"{_VALUES}[one of the lambdas of a line]",
    ),
    Mutant(
        "values that a class gets outside of its text are not seen",
        _SOURCES,
        (("        for attribute, value in _attributes(kind):\n", "        for attribute, value in ():\n"),),
        shown_by=f"{_VALUES}[a computed attribute of a class]",
    ),
    Mutant(
        "the state of the generator of random numbers is seen",
        _SOURCES,
        (("(known := _library_name(value))", "(known := None)"),),
        shown_by=f"{_SOURCE_TESTS}::test_a_function_of_a_library_that_has_a_state_is_known_by_its_name",
    ),
    Mutant(
        "a module in a module is not followed",
        _SOURCES,
        (
            (
                "        modules += [(name, value) for name, value in held.items() if isinstance(value, ModuleType)]\n",
                "",
            ),
        ),
        shown_by=f"{_SOURCE_TESTS}::test_a_module_in_a_package_of_the_user_is_followed",
    ),
    Mutant(
        "a Python worker that dies ends the epoch",
        _JOBS,
        (('if kind == "source" or ends_run', 'if kind == "source" or "worker" in str(error) or ends_run'),),
        shown_by=f"{_ISOLATED}::test_a_function_that_ends_its_process_stops_only_its_view[exits]",
    ),
    Mutant(
        "an exit in the work on a view escapes from its thread",
        _JOBS,
        (("            except BaseException as error:\n", "            except Exception as error:\n"),),
        shown_by=f"{_ISOLATED}::test_every_error_in_the_work_on_a_view_is_one_of_the_view[exit]",
    ),
    Mutant(
        "an exit in the function of a view ends the analysis",
        "spark_bridge/query/spark_analysis.py",
        (("        except BaseException as error:  # also", "        except Exception as error:  # also"),),
        shown_by=f"{_ISOLATED}::"
        "test_an_accepted_view_that_can_no_longer_be_analysed_stops_only_itself_and_its_readers[SystemExit]",
    ),
    Mutant(
        "an exit ends a loop in silence",
        "slackwater/running/loop_thread.py",
        (("        except BaseException as error:  # else", "        except ArithmeticError as error:  # else"),),
        shown_by="tests/slackwater/running/test_loop_thread.py::test_an_exit_within_a_turn_is_an_error_and_no_silence",
    ),
    Mutant(
        "the text of an error of a dead driver ends the run",
        _JOBS,
        (("        except (Py4JError, OSError):  # the text of", "        except ArithmeticError:  # the text of"),),
        shown_by="tests/spark_bridge/engine/session/test_spark_jobs.py::"
        "test_a_driver_that_dies_before_its_error_is_read_is_a_lost_application",
    ),
    Mutant(
        "an error of Python ends the run",
        _JOBS,
        (('if kind == "source" and not isinstance', "if not isinstance"),),
        shown_by=f"{_ISOLATED}::test_every_error_in_the_work_on_a_view_is_one_of_the_view[overflow]",
    ),
    Mutant(
        "the end of an attempt fails the views whose jobs it cancels",
        _ERRORS,
        ((r"Job \d+ cancelled|", ""),),
        shown_by=f"{_ISOLATED}::test_cancelled_jobs_are_no_failure_of_a_view",
    ),
    Mutant(
        "a view that ends attempts is never suspended",
        _POLICY,
        (("        if deaths == _TRIES_ALONE:\n", "        if deaths < 0:\n"),),
        shown_by=f"{_POLICIES}::test_a_view_that_is_alone_at_three_deaths_is_suspended_and_no_file_is_blamed",
    ),
    Mutant(
        "a death of several views counts for each of them",
        _POLICY,
        (("        if len(views) > 1:\n            return\n        (view,) = views\n", "        view = min(views)\n"),),
        shown_by=f"{_POLICIES}::test_a_view_that_is_alone_at_three_deaths_is_suspended_and_no_file_is_blamed",
    ),
    Mutant(
        "progress of a view does not clear it",
        _POLICY,
        (("            self._deaths.pop(view, None)\n", ""),),
        shown_by=f"{_POLICIES}::test_committed_changes_of_a_view_clear_it",
    ),
    Mutant(
        "a recorded suspension comes again",
        _POLICY,
        (("            self._suspended.pop(view, None)\n", ""),),
        shown_by=f"{_POLICIES}::test_a_suspension_lasts_until_an_epoch_records_it",
    ),
    Mutant(
        "views that have changed in an epoch that is not committed count as changed",
        "slackwater/running/materializer_loop.py",
        (("for view, first in self._changed.items() if first <= epoch)", "for view, first in self._changed.items())"),),
        shown_by="tests/slackwater/running/test_materializer_loop.py::"
        "test_the_loop_names_the_views_that_epochs_up_to_the_last_committed_one_have_changed",
    ),
    Mutant(
        "views are computed side by side after a death",
        "spark_bridge/engine/session/computing_views.py",
        (("with self._alone if must_wait else nullcontext():", "with nullcontext():"),),
        shown_by="tests/spark_bridge/engine/session/test_computing_views.py::test_for_a_while_one_view_is_computed_at_a_time",
    ),
    Mutant(
        "later errors of a death name other views",
        "spark_bridge/engine/session/computing_views.py",
        (("            if self._at_death is None:\n", "            if True:\n"),),
        shown_by="tests/spark_bridge/engine/session/test_computing_views.py::"
        "test_the_views_at_a_death_are_those_at_the_first_error",
    ),
    Mutant(
        "a suspended view is computed",
        "spark_bridge/materializer.py",
        (("for name in self._suspended.keys() & planned.keys():", "for name in ():"),),
        shown_by=f"{_ISOLATED}::test_a_view_that_ended_attempts_is_stopped_before_it_is_computed_again",
    ),
    Mutant(
        "rows that cannot be written end the epoch",
        "spark_bridge/datasets/dataset_writer.py",
        (("if is_of_rows(error, self._location):", "if is_of_rows(error, self._location) and not rows:"),),
        shown_by=f"{_ISOLATED}::test_rows_that_cannot_be_written_stop_their_view_and_a_store_that_fails_ends_the_epoch",
    ),
    Mutant(
        "a store that fails stops a view",
        "spark_bridge/datasets/dataset_writer.py",
        (("if isinstance(error, OSError) or isinstance(", "if isinstance("),),
        shown_by=f"{_ISOLATED}::test_rows_that_cannot_be_written_stop_their_view_and_a_store_that_fails_ends_the_epoch",
    ),
    Mutant(
        "an accepted view that cannot be analysed any more refuses the run",
        "spark_bridge/query/view_planner.py",
        (("if not _is_recorded(definition, known.get(name)):", "if definition.name == name:"),),
        shown_by=f"{_ISOLATED}::test_an_accepted_view_that_can_no_longer_be_analysed_stops_only_itself_and_its_readers",
    ),
    Mutant(
        "a view whose groups cannot be merged before rows are subtracted fails",
        "spark_bridge/maintenance/incremental_views.py",
        (("if not (type(view) is AggregateView and view.computes_again) or", "if view.changes is not None or"),),
        shown_by=f"{_ANSI}::test_new_rows_beside_a_replaced_file_overflow_only_in_between",
    ),
    Mutant(
        "new rows are not among those whose groups are computed again",
        "spark_bridge/operators/group/aggregate_view.py",
        (("        if new is not None:\n", "        if new is None:\n            new = EpochRows({}, 0, 1, 0)\n"),),
        shown_by=f"{_ANSI}::test_new_rows_beside_a_replaced_file_overflow_only_in_between",
    ),
    Mutant(
        "the names that byte code uses are not in the identity of a function",
        _SOURCES,
        (("names = (code.co_names, code.co_varnames,", "names = (code.co_varnames,"),),
        shown_by=_SOURCE_TESTS,
    ),
    Mutant(
        "a set in byte code has the order of the process",
        _SOURCES,
        (("', '.join(sorted(map(_constant_text, value)))", "', '.join(map(_constant_text, value))"),),
        shown_by=_SOURCE_TESTS,
    ),
    Mutant(
        "an expectation that cannot be computed ends the run",
        "slackwater/expectations/expectation_counts.py",
        (("        except _OF_ONE_VIEW as error:", "        except EpochExpiredError as error:"),),
        shown_by="tests/slackwater/expectations/test_expectation_counts.py",
    ),
    Mutant(
        "the retry of a view that cannot be analysed says yes",
        "slackwater/commands/attempt_views.py",
        (("        if name in broken:\n", "        if name in self._rebuilt:\n"),),
        shown_by="tests/slackwater/running/test_materializer_loop.py",
    ),
)
