"""The tables of a store, their version, and how an opened database is brought to it.

Optuna may share the database, so all our names carry a prefix and the version has a table of its own.
A listing reads only `calibrant_records`; arrays, which are a hundred times larger, stand beside it.
"""

from __future__ import annotations

import sqlalchemy as sa

from calibrant.engine.database import Database, missing
from calibrant.types import CalibrantError

VERSION = "0005"
VERSION_TABLE = "calibrant_alembic_version"
_OPTUNA = frozenset({"studies", "trials"})
_MIGRATION_LOCK = 0x0CA11B  # any number, as long as nobody else locks it

metadata = sa.MetaData()
# Sorted by code points on every database, so that a listing has one order everywhere.
_Sorted = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

provenance = sa.Table(
    "calibrant_provenance",
    metadata,
    sa.Column("digest", sa.Text, primary_key=True),  # of the body: thousands of cells share one
    sa.Column("body", sa.Text, nullable=False),  # JSON
)
records = sa.Table(
    "calibrant_records",
    metadata,
    sa.Column("cell", sa.Text, primary_key=True),
    sa.Column("problem", _Sorted, nullable=False),
    sa.Column("agent", _Sorted, nullable=False),
    sa.Column("seed", sa.BigInteger, nullable=False),
    sa.Column("reason", sa.Text),  # why it failed; null when it is done
    sa.Column(
        "scores", sa.Text, nullable=False
    ),  # JSON: {metric: [mean, se, n, mc_bias, mc_se]}, defaults at the end left out
    sa.Column("cost", sa.Text, nullable=False),  # JSON: what differs from the defaults
    sa.Column("provenance", sa.Text, sa.ForeignKey("calibrant_provenance.digest"), nullable=False),
    sa.Index("calibrant_records_order", "problem", "agent", "seed"),
)
arrays = sa.Table(
    "calibrant_arrays",
    metadata,
    sa.Column("cell", sa.Text, sa.ForeignKey("calibrant_records.cell"), primary_key=True),
    sa.Column("items", sa.LargeBinary),  # packed
    sa.Column("picture", sa.LargeBinary),  # packed; since 0002
)
studies = sa.Table(  # since 0003
    "calibrant_studies",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("body", sa.Text, nullable=False),  # JSON: everything that decides the study's numbers
)
trials = sa.Table(  # since 0003
    "calibrant_trials",
    metadata,
    sa.Column("study", sa.Text, sa.ForeignKey("calibrant_studies.name"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("batch", sa.Integer, nullable=False),  # trials of a batch were asked for together
    sa.Column("spec", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("objective", sa.Double),
    sa.Column("rungs", sa.Text, nullable=False),  # JSON: [[seeds, mean], ...]
    sa.Column("cost", sa.Double, nullable=False),  # CPU seconds
    sa.Column("reason", sa.Text),  # why it failed
    sa.Column("created", sa.Text, nullable=False),  # ISO 8601, UTC
)
receipts = sa.Table(  # since 0004
    "calibrant_receipts",
    metadata,
    sa.Column("digest", sa.Text, primary_key=True),  # of the body: an unchanged receipt stands here once
    sa.Column("paper", sa.Text, nullable=False),
    sa.Column("item", sa.Text, nullable=False),
    sa.Column("made", sa.Text, nullable=False),  # ISO 8601, UTC, when it last came out like this
    sa.Column("body", sa.Text, nullable=False),  # JSON
)
checkpoints = sa.Table(  # since 0005
    "calibrant_checkpoints",
    metadata,
    sa.Column("cell", sa.Text, primary_key=True),  # the last cell of the chunk: its record ends the checkpoint
    sa.Column("chunk", sa.Text, nullable=False),  # digest of the cells that are played side by side
    sa.Column("step", sa.BigInteger, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),  # packed
)


def prepare(database: Database, *, create: bool) -> None:
    """Make the tables, or upgrade older ones, in one transaction; refuse what is not ours or is newer than us."""
    with database.reading() as connection:
        version = stored_version(connection, database.name)
    if version is None and not create:
        raise missing(database.name)
    if create:
        database.use_write_ahead_log()
    if version != VERSION:
        _upgrade(database)


def stored_version(connection: sa.Connection, name: str) -> str | None:
    """The version of the tables; None when there are none yet and they may be made here."""
    tables = set(sa.inspect(connection).get_table_names())
    if VERSION_TABLE in tables:
        version = connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
        if version is None or not "0001" <= version <= VERSION:
            raise CalibrantError(
                f"store {name} has schema version {version or 'none'}, but this Calibrant reads versions up to "
                f"{VERSION}: a newer Calibrant is needed"
            )
        return str(version)
    if tables and not tables >= _OPTUNA:
        some = ", ".join(sorted(tables)[:3])
        raise CalibrantError(f"{name} belongs to another application (its tables: {some}); nothing in it was changed")
    return None


def _upgrade(database: Database) -> None:
    from calibrant.engine import migrations  # imports alembic, which an up-to-date store does not need

    with database.writing() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
        # Another process may have done it while we waited for the lock.
        if stored_version(connection, database.name) != VERSION:
            migrations.upgrade(connection, VERSION)
