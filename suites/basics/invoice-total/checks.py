"""Business rule of the invoice."""


def validate(invoice):
    """The total is the sum of the amounts."""
    total = round(sum(invoice["amounts"]), 2)
    if abs(total - invoice["total"]) > 0.001:
        return f"the amounts add up to {total}, but total is {invoice['total']}"
    return None


def preview(invoice):
    """Facts about the draft."""
    amounts = [number for number in invoice.get("amounts", []) if isinstance(number, int | float)]
    return (
        f"{len(amounts)} amounts that add up to {round(sum(amounts), 2)};"
        f" the total you wrote is {invoice.get('total')}."
    )
