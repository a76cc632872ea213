"""Business rule of the order."""


def validate(order):
    """Every item once, and a total that adds up."""
    items = [line["item"] for line in order["orders"]]
    if (
        len(set(items)) < len(items)
        or min((line["quantity"] for line in order["orders"]), default=0) < 1
    ):
        return "orders needs each item once, with a quantity of at least 1"
    total = sum(line["quantity"] for line in order["orders"])
    if total != order["total"]:
        return f"the quantities add up to {total}, but total is {order['total']}"
    return None


def preview(order):
    """Facts about the draft."""
    lines = order.get("orders", [])
    wanted = [f"{line['quantity']} {line['item']}" for line in lines]
    total = sum(line["quantity"] for line in lines)
    return f"Ordered: {', '.join(wanted)}. The quantities add up to {total}; you wrote {order.get('total')}."
