"""JSON, dictionaries, objects and strings, as web services in Python do them.

Usage: python3 objects.py PERCENT
"""
import json
import sys

PERCENT = int(sys.argv[1])


class Order:
    def __init__(self, number, customer, lines):
        self.number, self.customer, self.lines = number, customer, lines
        self.notes = [f"note {number}/{i}" for i in range(number % 4)]

    def total(self):
        return sum(price * pieces for _, price, pieces in self.lines)


def documents(count):
    for number in range(count):
        lines = [[f"article {number * 7 + i}", (number + i) % 97 + 0.5, i + 1] for i in range(number % 9)]
        yield json.dumps({"number": number, "customer": f"customer {number % 500}", "lines": lines})


def round_trip(count):
    orders, by_customer = {}, {}
    for text in documents(count):
        parsed = json.loads(text)
        order = Order(parsed["number"], parsed["customer"], [tuple(line) for line in parsed["lines"]])
        orders[order.number] = order
        by_customer.setdefault(order.customer, []).append(order)
        if order.number % 3 == 0:
            gone = orders.pop(order.number // 2, None)
            if gone is not None:
                by_customer[gone.customer].remove(gone)
    totals = {name: sum(order.total() for order in those) for name, those in by_customer.items()}
    text = json.dumps({name: [vars(order) for order in those] for name, those in by_customer.items()}, indent=1)
    words = text.split()
    return len(orders), round(sum(totals.values())), len(text), len(set(words))


print(*[round_trip(max(1, 80 * PERCENT)) for _ in range(6)])
