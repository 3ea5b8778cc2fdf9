"""Dictionaries of strings and tuples, and sorts by key. The argument is the number of entries."""

import sys

entries = int(sys.argv[1])
state = 12345
names = []
counts = {}
pairs = {}
for at in range(entries):
    state = (state * 1103515245 + 12345) % 2147483648
    name = "name%d" % ((state >> 8) % (entries // 4 + 1))
    names.append(name)
    counts[name] = counts.get(name, 0) + 1
    pairs.setdefault((at % 97, state % 13), []).append(name)

names.sort()
print(names[:3], names[-3:])
hottest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
print(hottest[:10])
records = [{"name": name, "count": count, "length": len(name)} for name, count in counts.items()]
records.sort(key=lambda record: (record["length"], record["name"]))
print(records[0], records[-1], sum(record["count"] for record in records))
print(sorted((key, len(found), min(found)) for key, found in pairs.items())[:20])
