"""The public names of `import slackwater as sw`, for type checkers and for `__init__.py`."""

from . import errors as errors
from . import expect as expect
from . import settings as settings
from .after_commit.actions import Delete as Delete
from .after_commit.actions import Move as Move
from .after_commit.actions import Tag as Tag
from .alerts.alert import Alert as Alert
from .branching.branch import branch as branch
from .branching.branch import drop_branch as drop_branch
from .branching.merge import merge as merge
from .branching.merge_steps import Merged as Merged
from .errors import SlackwaterError as SlackwaterError
from .formats import Avro as Avro
from .formats import Csv as Csv
from .formats import Debezium as Debezium
from .formats import Json as Json
from .formats import Orc as Orc
from .formats import Parquet as Parquet
from .formats import Text as Text
from .lineage.open_lineage import OpenLineage as OpenLineage
from .pipeline import Pipeline as Pipeline
from .planning.definition_change import DefinitionChange as DefinitionChange
from .planning.dry_run.dry_run import DryRun as DryRun
from .planning.dry_run.prices import Prices as Prices
from .planning.explanation import ViewExplanation as ViewExplanation
from .publishing.publication import Publication as Publication
from .publishing.targets import Delta as Delta
from .publishing.targets import Iceberg as Iceberg
from .publishing.targets import ParquetFiles as ParquetFiles
from .reading.changes.root_difference import ViewDifference as ViewDifference
from .reading.changes.view_changes import ViewChange as ViewChange
from .reading.snapshot import Snapshot as Snapshot
from .reading.store import Store as Store
from .reading.store import open as open
from .reading.story import Story as Story
from .reading.tables.page import Page as Page
from .reading.view import View as View
from .running.run import Run as Run
from .settings import Settings as Settings
from .sources import Listing as Listing
from .sources import Notifications as Notifications
from .status.run_status import AfterCommitStatus as AfterCommitStatus
from .status.run_status import PublicationStatus as PublicationStatus
from .status.run_status import RunReport as RunReport
from .status.run_status import RunStatus as RunStatus
from .status.run_status import SourceStatus as SourceStatus
from .status.run_status import StartupStep as StartupStep
from .status.run_status import ViewStatus as ViewStatus
from .status.trace import Span as Span
from .status.trace import Trace as Trace

__all__: list[str]
__version__: str
