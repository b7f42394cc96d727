"""Neighbours that go on sending numbers, and withhold their part of sums."""


def withhold(*, kinds="bchs", up=True, down=True, begun=True):
    """Withhold parts of sums of these kinds, totals, or that they were begun at all."""

    def lie(liar, name, message):
        for said in message.sums:
            if said.name[0] in kinds:
                said.up = b"" if up else said.up
                said.down = b"" if down else said.down
                if not begun:
                    said.wanted = said.done = 0
        return message

    return lie


def just_in_time(share, kinds="chs"):
    """Say everything, sums of these kinds as late as that share of a neighbour's patience."""

    def lie(liar, name, message):
        node = liar.node
        seen = liar.__dict__.setdefault("seen", {})
        seconds = share * node.withheld.patience
        for said in message.sums:
            key = name, said.name, message.roster_digest, said.wanted, said.done
            is_late = node.now - seen.setdefault(key, node.now) < seconds
            if said.name[0] in kinds and is_late:
                said.up = said.down = b""
        return message

    return lie


def another_roster(liar, name, message):
    message.roster_digest = 12345
    return message


WITHHELD = {
    "parts": withhold(down=False),
    "totals": withhold(up=False),
    "parts and totals": withhold(),
    "that it began": withhold(begun=False),
    "certificates alone": withhold(kinds="c"),
    "its roster": another_roster,
}
