"""Queries of Nexmark, in Spark's SQL, over the tables of `benchmarks.nexmark_events`.

From the published definitions (q1 to q8 of the paper, q0 and q9 to q13 of Apache Beam, q14 to q22 of Flink's Nexmark).
Q6 has the last ten auctions of a seller by their end.  Q10 has only its rows: a view is not stored in folders.
"""

from __future__ import annotations

from collections.abc import Mapping

SOURCES: Mapping[str, tuple[str, ...]] = {
    "q3": ("person", "auction"),
    "q4": ("auction", "bid"),
    "q6": ("auction", "bid"),
    "q8": ("person", "auction"),
    "q9": ("auction", "bid"),
    "q13": ("bid", "side"),
    "q20": ("auction", "bid"),
}
"""Query → the tables that it reads; the others read `bid`."""

LEFT_OUT: Mapping[str, str] = {
    "q12": "windows of the time of processing: rows of files have none, and a batch has no answer",
}
"""Query → why it has no meaning over files."""

_LEVELS = ("price < 10000", "price >= 10000 AND price < 1000000", "price >= 1000000")


def _by_level(call: str, name: str) -> str:
    """An aggregate over all bids, and over those of each level of prices."""
    of_levels = [f"{call} FILTER (WHERE {level}) AS rank{rank}_{name}" for rank, level in enumerate(_LEVELS, 1)]
    return ", ".join([f"{call} AS total_{name}", *of_levels])


_STATISTICS = ", ".join(
    [
        _by_level("count(*)", "bids"),
        _by_level("count(DISTINCT bidder)", "bidders"),
        _by_level("count(DISTINCT auction)", "auctions"),
    ]
)

QUERIES: Mapping[str, str] = {
    "q0": "SELECT auction, bidder, price, at, extra FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price AS price, at, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q3": """
        SELECT name, city, state, auction.id FROM auction JOIN person ON seller = person.id
        WHERE category = 10 AND state IN ('OR', 'ID', 'CA')""",
    "q4": """
        SELECT category, avg(final) AS price
        FROM (SELECT max(price) AS final, category FROM auction JOIN bid ON id = auction
              WHERE bid.at BETWEEN auction.at AND expires GROUP BY id, category)
        GROUP BY category""",
    "q5": """
        WITH counts AS (
                SELECT auction, count(*) AS bids, window FROM bid
                GROUP BY auction, window(at, '10 seconds', '2 seconds')),
             most AS (SELECT max(bids) AS most, window FROM counts GROUP BY window)
        SELECT auction, bids, counts.window.start AS since
        FROM counts JOIN most ON counts.window = most.window AND bids >= most""",
    "q6": """
        SELECT seller, id, avg(final) OVER (PARTITION BY seller ORDER BY expires, id
                                            ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS price
        FROM (SELECT seller, id, expires, max(price) AS final FROM auction JOIN bid ON id = auction
              WHERE bid.at BETWEEN auction.at AND expires GROUP BY seller, id, expires)""",
    "q7": """
        SELECT auction, price, bidder, at
        FROM bid JOIN (SELECT max(price) AS most, window.start AS since, window.end AS until FROM bid
                       GROUP BY window(at, '10 seconds')) ON price = most
        WHERE at >= since AND at < until""",
    "q8": """
        SELECT id, name, new.since
        FROM (SELECT id, name, window.start AS since FROM person GROUP BY id, name, window(at, '10 seconds')) AS new
        JOIN (SELECT seller, window.start AS since FROM auction GROUP BY seller, window(at, '10 seconds')) AS selling
          ON id = seller AND new.since = selling.since""",
    "q9": """
        SELECT id, item, seller, category, bidder, price, bid_at
        FROM (SELECT auction.*, bidder, price, bid.at AS bid_at,
                     row_number() OVER (PARTITION BY id ORDER BY price DESC, bid.at, bidder) AS place
              FROM auction JOIN bid ON id = auction WHERE bid.at BETWEEN auction.at AND expires)
        WHERE place = 1""",
    "q10": """
        SELECT auction, bidder, price, at, extra, date_format(at, 'yyyy-MM-dd') AS day,
               date_format(at, 'HH:mm') AS minute
        FROM bid""",
    "q11": """
        SELECT bidder, count(*) AS bids, session_window.start AS since, session_window.end AS until FROM bid
        GROUP BY bidder, session_window(at, '10 seconds')""",
    "q13": "SELECT auction, bidder, price, at, value FROM bid JOIN side ON auction % 10000 = key",
    "q14": """
        SELECT auction, bidder, 0.908 * price AS price, at, extra,
               CASE WHEN hour(at) BETWEEN 8 AND 18 THEN 'day' WHEN hour(at) <= 6 OR hour(at) >= 20 THEN 'night'
                    ELSE 'other' END AS part,
               length(extra) - length(replace(extra, 'c', '')) AS c_letters
        FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    "q15": f"""
        SELECT date_format(at, 'yyyy-MM-dd') AS day, {_STATISTICS}
        FROM bid GROUP BY date_format(at, 'yyyy-MM-dd')""",
    "q16": f"""
        SELECT channel, date_format(at, 'yyyy-MM-dd') AS day, max(date_format(at, 'HH:mm')) AS minute, {_STATISTICS}
        FROM bid GROUP BY channel, date_format(at, 'yyyy-MM-dd')""",
    "q17": f"""
        SELECT auction, date_format(at, 'yyyy-MM-dd') AS day, {_by_level("count(*)", "bids")},
               min(price) AS least, max(price) AS most, avg(price) AS average, sum(price) AS total
        FROM bid GROUP BY auction, date_format(at, 'yyyy-MM-dd')""",
    "q18": """
        SELECT auction, bidder, price, channel, url, at, extra
        FROM (SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY at DESC) AS place FROM bid)
        WHERE place = 1""",
    "q19": """
        SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC) AS place FROM bid)
        WHERE place <= 10""",
    "q20": """
        SELECT auction, bidder, price, channel, url, bid.at, bid.extra, item, description, initial_bid, reserve,
               auction.at AS opened, expires, seller, category
        FROM bid JOIN auction ON auction = id WHERE category = 10""",
    "q21": """
        SELECT auction, bidder, price, channel,
               CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2'
                    WHEN 'baidu' THEN '3' ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id
        FROM bid
        WHERE url RLIKE '(&|^)channel_id=' OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')""",
    "q22": """
        SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2,
               split_part(url, '/', 6) AS dir3
        FROM bid""",
}

CLOSED: Mapping[str, tuple[str, str]] = {
    "q5": (
        """
        SELECT auction, count(*) AS bids, window.start AS since, window.end AS until FROM bid
        GROUP BY auction, window(at, '10 seconds', '2 seconds')""",
        """
        SELECT auction, bids, counts.since
        FROM counts JOIN (SELECT max(bids) AS most, since FROM counts GROUP BY since) AS most
          ON counts.since = most.since AND bids >= most""",
    ),
    "q7": (
        """
        SELECT max(price) AS most, window.start AS since, window.end AS until FROM bid
        GROUP BY window(at, '10 seconds')""",
        "SELECT auction, price, bidder, at FROM bid JOIN counts ON price = most WHERE at >= since AND at < until",
    ),
}
"""Query → the view `counts` of its windows, which show when they close, and the query over it."""
