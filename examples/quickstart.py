"""Files in a directory become a view.  Run it twice: nothing is read again.  Add a file: only that one is read."""

from pathlib import Path

import slackwater as sw

here = Path("slackwater-quickstart")
orders = here / "orders"
orders.mkdir(parents=True, exist_ok=True)
if not any(orders.iterdir()):
    (orders / "monday.csv").write_text("item,price\ntea,2.5\nrum,9.0\ntea,2.5\n")

pipeline = sw.Pipeline("shop", root=here / "views")
pipeline.source("orders", orders, format="csv", schema="item string, price double")
pipeline.view("by_item", "SELECT item, count(*) AS sold, sum(price) AS earned FROM orders GROUP BY item")

if __name__ == "__main__":
    print(pipeline.run(until="caught_up"))
    print(sw.open(here / "views").snapshot().view("by_item").to_pandas())
