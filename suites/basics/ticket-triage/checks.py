"""Business rule of the triage."""

OWNERS = {"billing": "Ada", "login": "Ben", "crash": "Cleo"}


def validate(ticket):
    """Category and priority are ones that exist, and the owner fits."""
    owner = OWNERS.get(ticket["category"])
    if owner is None:
        return f"category must be one of {', '.join(OWNERS)}"
    if ticket["priority"] not in ("normal", "high"):
        return "priority must be normal or high"
    if ticket["owner"] != owner:
        return f"tickets of category {ticket['category']} belong to {owner}, not {ticket['owner']}"
    return None


def preview(ticket):
    """Facts about the draft."""
    category = ticket.get("category")
    return (
        f"Category {category} belongs to {OWNERS.get(category, 'nobody')};"
        f" you wrote {ticket.get('owner')}."
        f" Priority: {ticket.get('priority')}."
    )
