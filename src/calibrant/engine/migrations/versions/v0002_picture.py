"""What a belief looks like: a picture beside the items."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("calibrant_arrays", sa.Column("picture", sa.LargeBinary))
