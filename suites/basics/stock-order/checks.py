"""Business rule of the order."""


def validate(order):
    """Whole packs, and a total that adds up."""
    for line in order["orders"]:
        if line["quantity"] % 10 or line["quantity"] <= 0:
            return (
                f"{line['item']}: quantity {line['quantity']} is not a multiple of 10"
            )
    total = sum(line["quantity"] for line in order["orders"])
    if total != order["total"]:
        return (
            f"the quantities add up to {total}, but total is {order['total']}"
        )
    return None


def preview(order):
    """Facts about the draft."""
    lines = order.get("orders", [])
    packs = [f"{line['item']}: {line['quantity'] / 10:g} packs of 10" for line in lines]
    total = sum(line["quantity"] for line in lines)
    return f"{'; '.join(packs)}. The quantities add up to {total}; you wrote {order.get('total')}."
