"""What a basket costs."""


def total(prices, discount=0.0):
    """The sum of the prices, less the discount: 0.1 takes a tenth off."""
    return round(sum(prices) * discount, 2)
