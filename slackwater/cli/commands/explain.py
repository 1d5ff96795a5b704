"""`slackwater explain`: the class of each view, and the reason, printed."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from slackwater.cli.display.view_graph import graph_lines
from slackwater.cli.terminal.output import Output

if TYPE_CHECKING:
    from slackwater.pipeline import Pipeline
    from slackwater.planning.definition_change import DefinitionChange


def print_explanations(pipeline: Pipeline, output: Output) -> bool:
    """Analyses the views of a pipeline, which starts Spark, and prints their classes.  False: a view is refused."""
    explanations = pipeline.explain()
    is_refused = any(each.view_class == "refused" for each in explanations)
    if output.json:
        output.document(
            [
                {
                    "name": each.name,
                    "class": each.view_class,
                    "reads": each.reads,
                    "text": each.text,
                    "costs": [asdict(cost) for cost in each.costs.values()],
                }
                for each in explanations
            ]
        )
        return not is_refused
    for line in graph_lines({each.name: each.reads for each in explanations}):
        output.text(line)
    for explanation in explanations:
        output.text(f"{explanation.name}: {explanation.view_class}")
        for line in explanation.text.splitlines():
            output.text(f"    {line}")
    return not is_refused


def print_change(change: DefinitionChange, output: Output) -> None:
    """Prints what becomes of a view whose definition has changed."""
    if output.json:
        output.document({**asdict(change), "text": change.text})
    else:
        output.paragraph(change.text)
