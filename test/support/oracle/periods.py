"""First instants of periods of a calendar in seconds, by Python's zoneinfo, as JSON.

Usage: periods.py full    { zone: { case: instants } }: every period from 2010 to 2020, checked against the date of every hour
       periods.py slice   [zone, case, instants]: days around a few clock changes in each zone, and some months from the 31st
"""

import calendar
import json
import sys
from bisect import bisect_right
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

# Each zone with the dates around which it does something unusual.
ZONES = {
    "UTC": ["2012-02-29"],
    "Europe/Berlin": ["2012-03-25", "2012-10-28"],
    "America/New_York": ["2016-03-13", "2016-11-06"],
    # Clocks went from 00:01 back to 23:01.
    "America/St_Johns": ["2010-11-07", "2011-03-13"],
    # Midnight is skipped in October, and comes twice in February.
    "America/Sao_Paulo": ["2018-11-04", "2018-02-18"],
    "America/Havana": ["2013-03-10", "2013-11-03"],
    "Africa/Cairo": ["2010-04-30", "2014-05-16", "2014-09-26"],
    "Asia/Tehran": ["2015-03-22", "2015-09-22"],
    "Asia/Kathmandu": ["2016-02-29"],
    # From 00:00 back to 23:30, and three years later from 23:30 to 00:00.
    "Asia/Pyongyang": ["2015-08-15", "2018-05-05"],
    # Clocks change by half an hour.
    "Australia/Lord_Howe": ["2014-04-06", "2014-10-05"],
    # 30 December 2011 did not happen.
    "Pacific/Apia": ["2011-12-30", "2012-04-01"],
}
FIRST, LAST = date(2010, 1, 1), date(2020, 1, 1)
DAY = timedelta(days=1)


def start_of(day, zone):
    """The first instant of a date, or of the next one that happens. Checked from instants to local dates, which is unambiguous."""
    local = lambda at: datetime.fromtimestamp(at, zone).date()
    at = int(datetime(day.year, day.month, day.day, tzinfo=zone, fold=0).timestamp())
    assert local(at) >= day > local(at - 1), (day, zone, at)
    return at


def month_start(year, month, billing_day):
    return date(year, month, min(billing_day, calendar.monthrange(year, month)[1]))


def dates(case):
    """First dates of periods, from the one that contains the first date on."""
    window, first_day = case.split(":")
    first_day = int(first_day)
    if window == "day":
        return [FIRST + n * DAY for n in range((LAST - FIRST).days + 2)]
    if window == "week":
        monday = FIRST - timedelta(days=(FIRST.weekday() - first_day) % 7)
        return [monday + 7 * n * DAY for n in range((LAST - FIRST).days // 7 + 3)]
    if window == "year":
        return [date(year, 1, 1) for year in range(FIRST.year, LAST.year + 2)]
    return [month_start(n // 12, n % 12 + 1, first_day) for n in range(12 * FIRST.year - 1, 12 * LAST.year + 2)]


CASES = ["day:1", "week:0", "week:6", "month:1", "month:15", "month:29", "month:30", "month:31", "year:1"]


def full(name):
    zone = ZoneInfo(name)
    starts = {case: [start_of(day, zone) for day in dates(case)] for case in CASES}
    days = dates("day:1")
    at = int(datetime(2010, 1, 2, tzinfo=timezone.utc).timestamp())
    while at < datetime(2019, 12, 30, tzinfo=timezone.utc).timestamp():
        counted = days[bisect_right(starts["day:1"], at) - 1]
        own = datetime.fromtimestamp(at, zone)
        # Clocks that go back over midnight show the day before once more.
        assert own.date() == counted or (own.date() == counted - DAY and own.fold == 1), (name, own, counted)
        at += 3600
    return starts


def sliced(name, unusual):
    zone = ZoneInfo(name)
    days = [date.fromisoformat(day) + n * DAY for day in unusual for n in range(-1, 4)]
    months = [month_start(n // 12, n % 12 + 1, 31) for n in range(12 * 2011 + 11, 12 * 2012 + 5)]
    weeks = [date(2012, 2, 27) + 7 * n * DAY for n in range(4)]
    years = [date(year, 1, 1) for year in (2012, 2013, 2014)]
    runs = [days[5 * n : 5 * n + 5] for n in range(len(unusual))]
    named = [("day:1", run) for run in runs] + [("month:31", months), ("week:0", weeks), ("year:1", years)]
    return [[case, [start_of(day, zone) for day in run]] for case, run in named]


if __name__ == "__main__":
    mode = sys.argv[1]
    found = {name: full(name) if mode == "full" else sliced(name, unusual) for name, unusual in ZONES.items()}
    if mode == "full":
        print(json.dumps(found))
    else:
        lines = [json.dumps([name, *run]) for name, runs in found.items() for run in runs]
        print("[\n  " + ",\n  ".join(lines) + "\n]")
