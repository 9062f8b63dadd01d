import { policies, problemsIn } from '@sluice/policies'
import { describe, expect, test } from 'vitest'
import { whilePolluted } from '../support/polluted.js'

/** A document with one mistake, at the line and column of `▸`, which is removed before the document is read. */
interface Mistake {
  readonly what: string
  readonly text: string
  readonly path: string
  readonly message: string
}

const policy = (text: string) => `version: 1\npolicies:\n  api:\n${text}`
const limits = (text: string) => policy(`    limits:\n      - ${text}\n`)
const NO_BUCKET =
  'buckets are counted by Redis alone: use slidingWindow or fixedWindow, or in code a lease, which never exceeds the limit'
const RELAXABLE = '    limits: [{ algorithm: slidingWindow, limit: 1, window: 1s }]\n'
const RIGHT = '    limits: [{ limit: 1, window: 1s }]\n'

const override = (text: string) => `${policy(RIGHT)}overrides:\n  - { ${text}, limits: [{ limit: 2 }] }\n`

const MISTAKES: readonly Mistake[] = [
  {
    what: 'no version',
    text: '▸policies: {}\n',
    path: '',
    message: 'version is missing: expected 1, the version of this form',
  },
  {
    what: 'another version',
    text: 'version: ▸2\npolicies: {}\n',
    path: 'version',
    message: 'expected 1, the version of this form, got 2',
  },
  {
    what: 'no policies',
    text: '▸version: 1\n',
    path: '',
    message: 'policies is missing: expected policies by their names',
  },
  {
    what: 'an array',
    text: '▸- a\n',
    path: '',
    message: 'expected a document of policies: an object with version and policies, got an array',
  },
  {
    what: 'nothing',
    text: '▸',
    path: '',
    message: 'expected a document of policies: an object with version and policies, got nothing',
  },
  {
    what: 'a misspelt field',
    text: `version: 1\n▸policys: {}\npolicies: {}\n`,
    path: 'policys',
    message: 'unknown field; did you mean policies? (expected $schema, version, carry, policies, overrides)',
  },
  {
    what: 'a name with a space',
    text: `version: 1\npolicies:\n  ▸a b:\n${RIGHT}`,
    path: 'policies["a b"]',
    message: 'wrong name: expected 1 to 64 letters, digits, "_" or "-"',
  },
  {
    what: '__proto__',
    text: `version: 1\npolicies:\n  a: { limits: [{ limit: 1, window: 1s }], ▸__proto__: {} }\n`,
    path: 'policies.a.__proto__',
    message:
      'unknown field (expected description, match, key, limits, tier, tiers, anonymous, cost, count, enforce, sharedTurns, respond, consistency, ban, allow, deny, allowLists, denyLists)',
  },
  {
    what: 'a name twice',
    text: policy(`${RIGHT}  ▸api:\n${RIGHT}`),
    path: 'policies.api',
    message: 'expected each field once, got it twice',
  },
  {
    what: 'no limits',
    text: 'version: 1\npolicies:\n  ▸api: {}\n',
    path: 'policies.api',
    message: 'expected limits, or tiers; both are missing',
  },
  {
    what: 'a ladder of bans that does not grow',
    text: policy(`${RIGHT}    ban: { after: 3, within: 1m, for: [1h, ▸1h] }\n`),
    path: 'policies.api.ban.for[1]',
    message: 'expected a longer time than the rung before, 1h, got "1h"',
  },
  {
    what: 'a ban by a kind that is not counted',
    text: policy(`${RIGHT}    ban: { by: ▸user, after: 3, within: 1m, for: [1h] }\n`),
    path: 'policies.api.ban.by',
    message: 'expected a kind that the policy counts: "ip", got "user"',
  },
  {
    what: 'a consistency without syncEvery',
    text: policy(`${RELAXABLE}    consistency: ▸{}\n`),
    path: 'policies.api.consistency',
    message: 'syncEvery is missing: expected a duration such as 30s (units: ms, s, m, h, d), or whole milliseconds',
  },
  {
    what: 'a consistency with a misspelt field',
    text: policy(`${RELAXABLE}    consistency: { ▸syncEvry: 100ms, syncEvery: 100ms }\n`),
    path: 'policies.api.consistency.syncEvry',
    message: 'unknown field; did you mean syncEvery? (expected syncEvery)',
  },
  {
    what: 'counts that are exchanged too often',
    text: policy(`${RELAXABLE}    consistency: { syncEvery: ▸5ms }\n`),
    path: 'policies.api.consistency.syncEvery',
    message: 'expected 10 ms to 1 minute, got 5',
  },
  {
    what: 'counts that are exchanged more seldom than the window ends',
    text: policy(`${RELAXABLE}    consistency: { syncEvery: ▸2s }\n`),
    path: 'policies.api.consistency.syncEvery',
    message: 'expected at most the window of 1000 ms, got 2000',
  },
  {
    what: 'a consistency beside a log',
    text: policy(`${RIGHT}    consistency: ▸{ syncEvery: 100ms }\n`),
    path: 'policies.api.consistency',
    message: 'a log holds each unit: use slidingWindow or fixedWindow, or leave out consistency',
  },
  {
    what: 'a consistency beside a bucket',
    text: policy(
      '    limits: [{ algorithm: tokenBucket, capacity: 5, refill: 1, every: 1s }]\n    consistency: ▸{ syncEvery: 100ms }\n',
    ),
    path: 'policies.api.consistency',
    message: NO_BUCKET,
  },
  {
    what: 'an override to a bucket beside a consistency',
    text: `${policy(`${RELAXABLE}    consistency: { syncEvery: 100ms }\n`)}overrides:\n  - { policy: api, key: { ip: 192.0.2.1 }, limits: ▸[{ algorithm: gcra }] }\n`,
    path: 'overrides[0].limits',
    message: `consistency: ${NO_BUCKET}`,
  },
  {
    what: 'an override to a log beside a consistency',
    text: `${policy(`${RELAXABLE}    consistency: { syncEvery: 100ms }\n`)}overrides:\n  - { policy: api, key: { ip: 192.0.2.1 }, limits: ▸[{ algorithm: slidingLog }] }\n`,
    path: 'overrides[0].limits',
    message: 'consistency: a log holds each unit: use slidingWindow or fixedWindow, or leave out consistency',
  },
  {
    what: 'an override to a unit that no limit of its policy counts',
    text: `${policy(RIGHT)}overrides:\n  - { policy: api, key: { ip: 192.0.2.1 }, limits: [{ limit: 2, unit: ▸tokens }] }\n`,
    path: 'overrides[0].limits[0].unit',
    message: 'expected a unit that its policy counts, "requests", got "tokens"',
  },
  {
    what: 'an override to bytes that no limit of its policy counts',
    text: `${policy(RIGHT)}overrides:\n  - { policy: api, key: { ip: 192.0.2.1 }, limits: [{ limit: 2, algorithm: fixedWindow, unit: ▸content-bytes }] }\n`,
    path: 'overrides[0].limits[0].unit',
    message: 'expected a unit that its policy counts, "requests", got "content-bytes"',
  },
  {
    what: 'an empty array of limits',
    text: policy('    limits: ▸[]\n'),
    path: 'policies.api.limits',
    message: 'expected an array of 1 to 32 limits, got 0',
  },
  {
    what: 'a limit that is a number',
    text: limits('▸100'),
    path: 'policies.api.limits[0]',
    message: 'expected a limit such as { limit: 100, window: 1m }, got 100',
  },
  {
    what: 'limits that are an object',
    text: policy('    limits: ▸{ limit: 1 }\n'),
    path: 'policies.api.limits',
    message: 'expected an array of 1 to 32 limits, got an object',
  },
  {
    what: 'no window',
    text: limits('▸limit: 1'),
    path: 'policies.api.limits[0]',
    message: 'window is missing: expected a duration such as 30s (units: ms, s, m, h, d), or whole milliseconds',
  },
  {
    what: 'a limit in words',
    text: limits('{ limit: ▸ten, window: 1m }'),
    path: 'policies.api.limits[0].limit',
    message: 'expected a whole number of 0 or more, below 2^53, got "ten"',
  },
  {
    what: 'a limit below 0',
    text: limits('{ limit: ▸-1, window: 1m }'),
    path: 'policies.api.limits[0].limit',
    message: 'expected a whole number of 0 or more, below 2^53, got -1',
  },
  {
    what: 'half a request',
    text: limits('{ limit: ▸1.5, window: 1m }'),
    path: 'policies.api.limits[0].limit',
    message: 'expected a whole number of 0 or more, below 2^53, got 1.5',
  },
  {
    what: 'an infinite limit',
    text: limits('{ limit: ▸1e400, window: 1m }'),
    path: 'policies.api.limits[0].limit',
    message: 'expected a whole number of 0 or more, below 2^53, got Infinity',
  },
  {
    what: 'a window in words',
    text: limits('{ limit: 1, window: ▸1 minuite }'),
    path: 'policies.api.limits[0].window',
    message: 'expected a duration such as 30s (units: ms, s, m, h, d), or whole milliseconds, got "1 minuite"',
  },
  {
    what: 'a window of the calendar of a log',
    text: limits('{ limit: 1, window: ▸month }'),
    path: 'policies.api.limits[0].window',
    message:
      'expected a duration such as 30s (units: ms, s, m, h, d), or whole milliseconds, got "month"; a window of the calendar needs algorithm: fixedWindow',
  },
  {
    what: 'an unknown time zone',
    text: limits('{ algorithm: fixedWindow, limit: 1, window: month, timeZone: ▸Mars/Olympus }'),
    path: 'policies.api.limits[0].timeZone',
    message: 'expected the IANA name of a time zone such as "Europe/Berlin", got "Mars/Olympus"',
  },
  {
    what: 'a billing day of 0',
    text: limits('{ algorithm: fixedWindow, limit: 1, window: month, startsOn: ▸0 }'),
    path: 'policies.api.limits[0].startsOn',
    message: 'expected a day of the week such as monday, or a billing day from 1 to 31, got 0',
  },
  {
    what: 'a billing day of a week',
    text: limits('{ algorithm: fixedWindow, limit: 1, window: week, startsOn: ▸31 }'),
    path: 'policies.api.limits[0].startsOn',
    message: 'expected a day of the week such as "monday", got 31',
  },
  {
    what: 'a time zone of a window in days',
    text: limits('{ algorithm: fixedWindow, limit: 1, window: 30d, ▸timeZone: UTC }'),
    path: 'policies.api.limits[0].timeZone',
    message:
      'expected none without a window of the calendar, such as "month", got "UTC": add a window of the calendar, such as "month", or leave out timeZone',
  },
  {
    what: 'relaxed counts of a window of the calendar',
    text: policy(
      '    limits: [{ algorithm: fixedWindow, limit: 1, window: month }]\n    consistency: ▸{ syncEvery: 1s }\n',
    ),
    path: 'policies.api.consistency',
    message:
      'windows of the calendar are counted by Redis alone: use a window in days such as "30d", or leave out consistency',
  },
  {
    what: 'a window of 0',
    text: limits('{ limit: 1, window: ▸0 }'),
    path: 'policies.api.limits[0].window',
    message: 'expected a duration such as 30s (units: ms, s, m, h, d), or whole milliseconds, got 0',
  },
  {
    what: 'a window of 200 years',
    text: limits('{ limit: 1, window: ▸73000d }'),
    path: 'policies.api.limits[0].window',
    message:
      'expected whole milliseconds or a duration such as "30s" (units: ms, s, m, h, d), from 1 ms to 100 years (36500d), got "73000d"',
  },
  {
    what: 'products that would round',
    text: limits('{ algorithm: gcra, limit: ▸9007199254740991, window: 1d }'),
    path: 'policies.api.limits[0].limit',
    message:
      'expected units times window in ms to stay below 2^53, got 9007199254740991 * 86400000: use a shorter window, or fixedWindow, which has no such bound',
  },
  {
    what: 'an unknown algorithm',
    text: limits('{ algorithm: ▸tokenBuckt, capacity: 5 }'),
    path: 'policies.api.limits[0].algorithm',
    message:
      'expected "slidingLog" or "fixedWindow" or "slidingWindow" or "gcra" or "tokenBucket" or "leakyBucket" or "concurrency", got "tokenBuckt"; did you mean tokenBucket?',
  },
  {
    what: 'an option of another algorithm',
    text: limits('{ limit: 1, window: 1m, ▸burst: 5 }'),
    path: 'policies.api.limits[0].burst',
    message: 'unknown field (expected algorithm, limit, window, unit, estimate, name, key, respond)',
  },
  {
    what: 'refill beside limit',
    text: limits('{ algorithm: tokenBucket, ▸refill: 5, limit: 5, every: 1s }'),
    path: 'policies.api.limits[0].refill',
    message: 'expected none beside limit, got 5: leave out refill, or limit',
  },
  {
    what: 'two limits of one name',
    text: policy(
      '    limits:\n      - { name: a, limit: 1, window: 1s }\n      - { name: ▸a, limit: 2, window: 1m }\n',
    ),
    path: 'policies.api.limits[1].name',
    message: 'expected limits whose names differ by more than case, got "a" twice',
  },
  {
    what: 'segments that do not divide',
    text: limits('{ algorithm: slidingWindow, limit: 1, window: 10s, segments: ▸7 }'),
    path: 'policies.api.limits[0].segments',
    message: 'expected up to 1000 equal parts of the window of 10000 ms in whole ms, got 7',
  },
  {
    what: 'an unknown kind',
    text: policy(`    key: ▸{ ipv6: 1 }\n${RIGHT}`).replace('▸{ ipv6', '{ ▸ipv6'),
    path: 'policies.api.key.ipv6',
    message: 'unknown field (expected ip)',
  },
  {
    what: 'units of two policies that differ by case alone',
    text: `version: 1
policies:
  a: { cost: { tokens: 1 }, limits: [{ limit: 1, window: 1m, unit: tokens }] }
  b: { cost: { Tokens: 1 }, limits: [{ limit: 1, window: 1m, unit: ▸Tokens }] }
`,
    path: 'policies.b.limits[0].unit',
    message: 'expected units that differ by more than case, got "Tokens" beside "tokens"',
  },
  {
    what: 'a key of kinds that are too long together',
    text: policy(`    key: ▸["header:${'a'.repeat(190)}", "header:${'b'.repeat(190)}"]\n${RIGHT}`),
    path: 'policies.api.key',
    message: 'expected kinds of at most 256 characters together',
  },
  {
    what: 'a list of a kind that the policy does not read',
    text: policy(`    allow: ▸{ "account": [acme] }\n${RIGHT}`),
    path: 'policies.api.allow',
    message:
      'expected kinds that this policy reads from a request ("ip", "header:…", "cookie:…"), got "account" in list',
  },
  {
    what: 'a key that is a number',
    text: policy(`    key: ▸42\n${RIGHT}`),
    path: 'policies.api.key',
    message: 'expected a kind such as ip, { ip: { ipv6Prefix: 56 } }, or an array of kinds, got 42',
  },
  {
    what: 'a prefix that IPv4 does not have',
    text: policy(`    key: { ip: { ipv4Prefix: ▸48 } }\n${RIGHT}`),
    path: 'policies.api.key.ip.ipv4Prefix',
    message: 'expected a whole number from 1 to 32, got 48',
  },
  {
    what: 'a method in lower case',
    text: policy(`    match: { methods: [▸get] }\n${RIGHT}`),
    path: 'policies.api.match.methods[0]',
    message: 'expected a method in upper case, such as GET, got "get"',
  },
  {
    what: 'a path without its slash',
    text: policy(`    match: { paths: [▸users] }\n${RIGHT}`),
    path: 'policies.api.match.paths[0]',
    message: 'expected a path that begins with /, such as /users/:id or /api/**, got "users"',
  },
  {
    what: 'a wildcard within a segment',
    text: policy(`    match: { paths: [▸/a*b] }\n${RIGHT}`),
    path: 'policies.api.match.paths[0]',
    message: 'expected *, ** or :name as a whole segment, got "/a*b"',
  },
  {
    what: '** in the middle',
    text: policy(`    match: { paths: [▸/a/**/b] }\n${RIGHT}`),
    path: 'policies.api.match.paths[0]',
    message: 'expected ** as the last segment alone, got "/a/**/b"',
  },
  {
    what: 'a path with a query',
    text: policy(`    match: { paths: ["▸/a?b=c"] }\n${RIGHT}`.replace('"▸', '▸"')),
    path: 'policies.api.match.paths[0]',
    message: 'expected a path without a query, got "/a?b=c"',
  },
  {
    what: 'an unknown mode',
    text: policy(`    enforce: { mode: ▸shadow }\n${RIGHT}`),
    path: 'policies.api.enforce.mode',
    message: 'expected "enforce" or "report", got "shadow"',
  },
  {
    what: 'a ttl of shared turns that is too short',
    text: policy(`    sharedTurns: { ttl: ▸50ms }\n${RIGHT}`),
    path: 'policies.api.sharedTurns.ttl',
    message: "expected a duration from '100ms' to '1m', got \"50ms\"",
  },
  {
    what: 'shared turns with a misspelt field',
    text: policy(`    sharedTurns: { ▸tll: 1s }\n${RIGHT}`),
    path: 'policies.api.sharedTurns.tll',
    message: 'unknown field; did you mean ttl? (expected ttl)',
  },
  {
    what: '101 percent',
    text: policy(`    enforce: { percent: ▸101 }\n${RIGHT}`),
    path: 'policies.api.enforce.percent',
    message: 'expected a number from 0 to 100, got 101',
  },
  {
    what: 'a percentage beside report',
    text: policy(`    enforce: { mode: report, ▸percent: 5 }\n${RIGHT}`),
    path: 'policies.api.enforce.percent',
    message: 'expected none beside mode: report',
  },
  {
    what: 'an earlier name of an option',
    text: policy(`    ▸enforcePercent: 5\n${RIGHT}`),
    path: 'policies.api.enforcePercent',
    message:
      'unknown field; use enforce: { percent } (expected description, match, key, limits, tier, tiers, anonymous, cost, count, enforce, sharedTurns, respond, consistency, ban, allow, deny, allowLists, denyLists)',
  },
  {
    what: 'a mode outside of enforce',
    text: policy(`    ▸mode: report\n${RIGHT}`),
    path: 'policies.api.mode',
    message:
      'unknown field; use enforce: { mode } (expected description, match, key, limits, tier, tiers, anonymous, cost, count, enforce, sharedTurns, respond, consistency, ban, allow, deny, allowLists, denyLists)',
  },
  {
    what: 'a count without only',
    text: policy(`    count: ▸failure\n${RIGHT}`),
    path: 'policies.api.count',
    message: 'expected the requests that count, such as { only: failure }, got "failure"',
  },
  {
    what: 'an earlier name in the growth of bans',
    text: policy(`    ban: { after: 3, within: 1m, for: { first: 1m, ▸most: 1h } }\n${RIGHT}`),
    path: 'policies.api.ban.for.most',
    message: 'unknown field; use max (expected first, times, max)',
  },
  {
    what: 'tiers without tier',
    text: policy('    ▸tiers: { a: [{ limit: 1, window: 1s }] }\n'),
    path: 'policies.api.tiers',
    message: 'expected tier beside it, the name of a resolver',
  },
  {
    what: 'tier without tiers',
    text: policy(`    ▸tier: plan\n${RIGHT}`),
    path: 'policies.api.tier',
    message: 'expected tiers beside it',
  },
  {
    what: 'limits beside tiers',
    text: policy(`    tier: plan\n    ▸tiers: { a: [{ limit: 1, window: 1s }] }\n${RIGHT}`),
    path: 'policies.api.tiers',
    message: 'expected none beside limits',
  },
  {
    what: 'a shadow responder',
    text: policy(`    respond: { ▸shadow: { learn: true } }\n${RIGHT}`),
    path: 'policies.api.respond.shadow',
    message: 'unknown field (expected reject, pass, degrade, delay, queue, tarpit, throttle)',
  },
  {
    what: 'an unknown responder',
    text: policy(`    respond: ▸refuse\n${RIGHT}`),
    path: 'policies.api.respond',
    message:
      'expected reject, pass, degrade, delay, queue, tarpit, throttle, or one of these with its options, got "refuse"',
  },
  {
    what: 'a wrong status',
    text: policy(`    respond: { reject: { status: ▸404 } }\n${RIGHT}`),
    path: 'policies.api.respond.reject.status',
    message: 'expected 429 or 503, got 404',
  },
  {
    what: 'an override of an unknown policy',
    text: override('policy: ▸apy, key: { ip: 192.0.2.1 }'),
    path: 'overrides[0].policy',
    message: 'expected "api", got "apy"',
  },
  {
    what: 'an override without a client',
    text: override('▸policy: api').replace('- { ▸', '- ▸{ '),
    path: 'overrides[0]',
    message: 'expected one of key, prefix and range, got none',
  },
  {
    what: 'an override by key and range',
    text: override('▸policy: api, key: { ip: 192.0.2.1 }, range: 192.0.2.0/24').replace('- { ▸', '- ▸{ '),
    path: 'overrides[0]',
    message: 'expected one of key, prefix and range, got 2',
  },
  {
    what: 'an override of one client twice',
    text: `${override('policy: api, key: { ip: 192.0.2.1 }')}  - { policy: api, key: ▸{ ip: 192.0.2.1 }, limits: [{ limit: 3 }] }\n`,
    path: 'overrides[1].key',
    message: 'expected one override for each client and policy, got it twice',
  },
  {
    what: 'an invalid range',
    text: override('policy: api, range: ▸192.0.2.0/33'),
    path: 'overrides[0].range',
    message: 'expected an address, or a range such as "192.0.2.0/24" or "192.0.2.0-192.0.2.9", got "192.0.2.0/33"',
  },
  {
    what: 'a secret in plain text',
    text: override('policy: api, key: { "header:x-api-key": ▸letmein }'),
    path: 'overrides[0].key["header:x-api-key"]',
    message: 'expected sha256: and 64 hexadecimal digits, as `printf %s VALUE | sha256sum` prints it',
  },
  {
    what: 'a time without a zone',
    text: override('policy: api, key: { ip: 192.0.2.1 }, until: ▸2027-01-01T00:00:00'),
    path: 'overrides[0].until',
    message: 'expected a time with its zone, such as 2026-12-31T00:00:00Z, got "2027-01-01T00:00:00"',
  },
  {
    what: 'an override of an unknown limit',
    text: override('policy: api, key: { ip: 192.0.2.1 }').replace('[{ limit: 2 }]', '[{ name: ▸burst, limit: 2 }]'),
    path: 'overrides[0].limits[0].name',
    message: 'expected no name, as the limits have none; got "burst"',
  },
  {
    what: 'an override that changes the only limit twice',
    text: override('policy: api, key: { ip: 192.0.2.1 }').replace('[{ limit: 2 }]', '[{ limit: 5 }, ▸{ limit: 6 }]'),
    path: 'overrides[0].limits[1]',
    message: 'expected one change of each limit of the policy, got a second one',
  },
  {
    what: 'an override that changes a limit of each tier twice',
    text: `${policy(
      '    tier: plan\n    tiers: { free: [{ name: day, limit: 1, window: 1d }], paid: [{ name: day, limit: 9, window: 1d }] }\n',
    )}overrides:\n  - { policy: api, key: { ip: 192.0.2.1 }, limits: [{ name: day, limit: 5 }, ▸{ limit: 6 }] }\n`,
    path: 'overrides[0].limits[1]',
    message: 'expected one change of each limit of the policy, got a second one',
  },
  {
    what: 'an override without limits',
    text: override('▸policy: api, key: { ip: 192.0.2.1 }')
      .replace(', limits: [{ limit: 2 }]', '')
      .replace('- { ▸', '- ▸{ '),
    path: 'overrides[0]',
    message: 'limits is missing: expected an array of 1 to 32 changes of limits',
  },
  {
    what: 'a list of addresses with a name in it',
    text: policy(`${RIGHT}    deny: { ip: [192.0.2.1, ▸localhost] }\n`),
    path: 'policies.api.deny.ip[1]',
    message: 'expected an address, or a range such as "192.0.2.0/24" or "192.0.2.0-192.0.2.9", got "localhost"',
  },
  {
    what: 'a host with a scheme',
    text: policy(`    match: { hosts: ["▸https://a.example"] }\n${RIGHT}`.replace('"▸', '▸"')),
    path: 'policies.api.match.hosts[0]',
    message: 'expected a host such as api.example.com or *.example.com, got "https://a.example"',
  },
  {
    what: 'a delay without a unit',
    text: policy(`    respond: { delay: { max: ▸5 seconds } }\n${RIGHT}`),
    path: 'policies.api.respond.delay.max',
    message: 'expected a duration such as 30s (units: ms, s, m, h, d), or whole milliseconds, got "5 seconds"',
  },
  {
    what: 'an empty policy',
    text: 'version: 1\npolicies:\n  api:▸\n',
    path: 'policies.api',
    message: 'expected a policy: an object with limits, or with tier and tiers, got nothing',
  },
  {
    what: 'a tab as indentation',
    text: 'version: 1\npolicies:\n▸\tapi: {}\n',
    path: '',
    message: 'Tabs are not allowed as indentation',
  },
  {
    what: 'a quote that is not closed',
    text: 'version: 1\npolicies: {"a: 1}\n▸',
    path: '',
    message: 'Missing closing "quote',
  },
  {
    what: 'an alias without an anchor',
    text: 'version: 1\npolicies: ▸*nothing\n',
    path: 'policies',
    message: 'expected an anchor &nothing before the alias',
  },
  {
    what: 'two documents',
    text: 'version: 1\npolicies: {}\n▸---\nversion: 1\n',
    path: '',
    message: 'expected one document, got a second one',
  },
]

describe('mistakes in documents', () => {
  test.each(MISTAKES.map((mistake) => [mistake.what, mistake] as const))(
    'a document with %s is rejected with line, column and path',
    (_what, { text, path, message }) => {
      const before = text.slice(0, text.indexOf('▸'))
      const line = before.split('\n').length
      const column = before.length - before.lastIndexOf('\n')
      const problems = problemsIn(text.replace('▸', ''), 'policies.yaml', 'any')
      expect(problems.map((problem) => ({ ...problem, message: '' }))).toContainEqual({
        source: 'policies.yaml',
        line,
        column,
        path,
        message: '',
      })
      expect(problems[0]?.message).toBe(message)
    },
  )

  test('all mistakes of a document are reported at once', () => {
    const text = policy('    mode: shadow\n    limits:\n      - { limit: ten, window: 1m }\n      - { limit: 1 }\n')
    expect(problemsIn(text, 'a.yaml', 'any').map(({ path }) => path)).toEqual([
      'policies.api.mode',
      'policies.api.limits[0].limit',
      'policies.api.limits[1]',
    ])
  })

  test('an unregistered name of a key is rejected if the registered ones are known', () => {
    const text = policy(`    key: account\n${RIGHT}`)
    expect(problemsIn(text, 'a.yaml', { keys: { user: () => 'ann' } })[0]).toMatchObject({
      line: 4,
      column: 10,
      path: 'policies.api.key',
      message: expect.stringMatching(/expected ip, .*user .*got "account"/),
    })
    expect(problemsIn(text, 'a.yaml', 'any')).toEqual([])
  })
})

test('the first hundred of thousands of mistakes are reported, each with its place', () => {
  const fields = Array.from({ length: 20_000 }, (_, i) => `    matc${i}: 1`)
  const problems = problemsIn(policy(`${RIGHT}${fields.join('\n')}\n`), 'a.yaml', 'any')
  expect(problems).toHaveLength(100)
  expect(problems[99]).toMatchObject({ line: 104, column: 5, message: expect.stringMatching(/unknown field/) })
})

test('an alias stands for the last anchor of its name before it, with thousands of aliases', () => {
  // A walk through the document for each alias would take a minute.
  const many = Array.from({ length: 15_000 }, () => '*b')
  const text = `version: 1
policies:
  a: { limits: &a [{ limit: 1, window: 1s }], description: &b first }
  b: { limits: *a, description: *b }
  c: { limits: &a [{ limit: ten, window: 1s }], description: &b second }
  d: { limits: *a, allow: { user: [${many.join(', ')}] } }
`
  expect(problemsIn(text, 'a.yaml', 'any')).toMatchObject([
    { line: 5, column: 29, path: 'policies.c.limits[0].limit' },
    { line: 5, column: 29, path: 'policies.d.limits[0].limit' },
  ])
})

test.each([
  ['percent', 1],
  ['cost', 0],
  ['keys', {}],
])('a document is rejected while Object.prototype has %s', async (name, value) => {
  const object = { version: 1, policies: { api: { limits: [{ limit: 1, window: '1m' }] } } }
  await expect(whilePolluted(name, value, () => policies.from({ object }))).rejects.toThrow(
    `policies.from: ${name}: expected no property of this name on Object.prototype`,
  )
})

test.each([
  ['a Map', new Map([['api', { limits: [] }]]), 'policies', 'Map'],
  ['a Set', new Set(['api']), 'policies', 'Set'],
  ['a Date', { api: { limits: [{ limit: 1, window: new Date() }] } }, 'policies.api.limits[0].window', 'Date'],
])('%s in a document given as an object is rejected', async (_, given, path, form) => {
  await expect(policies.from({ object: { version: 1, policies: given } })).rejects.toThrow(
    `object: ${path}: expected plain data, as JSON may hold it, got a ${form}`,
  )
})
