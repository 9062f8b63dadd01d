import { createRequire as __cr } from 'node:module'; const require = __cr(import.meta.url);

// packages/core/src/util/escape.ts
var STEERING = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
function escapeControls(text) {
  return text.replace(
    STEERING,
    (character) => character.replace(/./gs, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
  );
}

// packages/core/src/util/errors.ts
var SluiceError = class extends Error {
  code;
  constructor(code, message, options) {
    super(message, options);
    this.name = "SluiceError";
    this.code = code;
  }
};
function show(value) {
  if (typeof value === "string") return quoted(value);
  if (typeof value === "function") return "a function";
  if (typeof value === "object" && value !== null) return kindOf(value);
  return escapeControls(cut(String(value)));
}
var MAX_SHOWN = 60;
function cut(text) {
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}\u2026` : text;
}
function quoted(text) {
  let shown2 = text.slice(0, MAX_SHOWN);
  while (inQuotes(shown2).length > 2 * MAX_SHOWN) shown2 = shown2.slice(0, -1);
  return inQuotes(shown2 === text ? text : `${shown2}\u2026`);
}
function inQuotes(text) {
  return escapeControls(JSON.stringify(text));
}
function kindOf(value) {
  try {
    if (value instanceof Map) return "a Map";
    if (!(value instanceof Promise)) return Array.isArray(value) ? "an array" : "an object";
    value.catch(() => {
    });
    return "a promise";
  } catch {
    return "an object";
  }
}
function invalidPolicy(where, field, expected, got, remedy) {
  const hint = remedy === void 0 ? "" : `: ${remedy}`;
  wrongPolicy(`${where}: ${field}: expected ${expected}, got ${show(got)}${hint}`);
}
function wrongPolicy(message) {
  throw new SluiceError("INVALID_POLICY", message);
}
function neverBeside(where, field, other, got) {
  invalidPolicy(where, field, `none beside ${other}`, got, `leave out ${field}, or ${other}`);
}
function neverWithout(where, field, other, got) {
  invalidPolicy(where, field, `none without ${other}`, got, `add ${other}, or leave out ${field}`);
}
function invalidKey(field, expected, got) {
  throw new SluiceError("INVALID_KEY", `${field}: expected ${expected}, got ${show(got)}`);
}

// packages/core/src/kernels/reply.ts
function atLeastNone(reply, units) {
  if (units < 0) throw reply.unreadable("expected no more to be taken than the limit, and no less than none");
  return units;
}

// packages/core/src/kernels/bucket.ts
function paceOf(debt, limit, windowMs, capacity) {
  return debt <= capacity * windowMs ? limit : Math.max(limit, Math.ceil(debt / windowMs) - capacity + 1);
}
function drain(debt, since, at, limit, stepMs) {
  const elapsed = Math.floor(at / stepMs) * stepMs - Math.floor(since / stepMs) * stepMs;
  return Math.max(0, debt - elapsed * limit);
}
function waitFor(debt, at, cost, limit, windowMs, capacity, stepMs) {
  if (cost > capacity) return -1;
  const excess = debt + cost * windowMs - capacity * windowMs;
  if (excess <= 0 || cost < Math.min(1, capacity)) return 0;
  const steps = Math.ceil(excess / (limit * stepMs));
  return (Math.floor(at / stepMs) + steps) * stepMs - at;
}
function charge(debt, cost, windowMs, capacity) {
  return Math.min(capacity * windowMs, debt + cost * windowMs);
}
function remaining(debt, windowMs, capacity) {
  return Math.floor((capacity * windowMs - debt) / windowMs);
}
var MAX_REFUNDED = Number.MAX_SAFE_INTEGER;
function refund(debt, refunded, from, at, cost, receipt, before, chargedAt, limit, windowMs, capacity, stepMs) {
  const since = chargedAt < from ? capacity * windowMs : refunded - before;
  const own = cost * windowMs;
  const paidFrom = Math.min(chargedAt, at);
  const left = drain(receipt, paidFrom, at, limit, stepMs);
  const owed = Math.min(debt, own, Math.max(left - Math.max(0, since), drain(own, paidFrom, at, limit, stepMs)));
  if (owed === 0 || since === 0 && debt === left) return { debt: debt - owed, refunded, from };
  if (refunded + owed < MAX_REFUNDED) return { debt: debt - owed, refunded: refunded + owed, from };
  return { debt: debt - owed, refunded: 0, from: at + 1 };
}
var readReport = (reply, values, params, now, need, later2) => {
  const [limit, windowMs, capacity, stepMs] = params;
  let debt = atLeastNone(reply, reply.uint56() - later2 * windowMs);
  let at = reply.uint48();
  const pace = paceOf(debt, limit, windowMs, capacity);
  if (pace !== limit) {
    const since = at;
    at = Math.max(since, now);
    debt = drain(debt, since, at, pace, stepMs);
  }
  if (at < now) throw reply.unreadable("expected no state older than the decision");
  const wait = (cost) => {
    const ms = waitFor(debt, at, cost, pace, windowMs, capacity, stepMs);
    return ms > 0 ? ms + at - now : ms;
  };
  const left = Math.max(0, remaining(debt, windowMs, capacity));
  if (need === void 0) values.push(left, 0, wait(capacity), debt);
  else values.push(left, wait(need), wait(capacity), wait(left + 1));
};

// packages/core/src/kernels/concurrency.ts
function firstHeld(ends, now) {
  let low = 0;
  let high = ends.length;
  while (low < high) {
    const middle = low + high >>> 1;
    if (ends[middle] > now) high = middle;
    else low = middle + 1;
  }
  return low;
}
function waitFor2(ends, first2, now, cost, limit, ttlMs) {
  if (cost > limit) return -1;
  const missing = ends.length - first2 + cost - limit;
  if (cost === 0 || missing <= 0) return 0;
  return Math.min(ends[first2 + missing - 1] - now, ttlMs);
}
var readReport2 = (reply, values, _, __, need) => {
  const free = reply.uint56();
  const reset = reply.uint56();
  if (need === void 0) values.push(free, 0, reset, 0);
  else values.push(free, reply.uint56() - 1, reset, reply.uint56() - 1);
};

// packages/core/src/kernels/counter.ts
function startOf(at, windowMs, byClock) {
  return byClock ? Math.floor(at / windowMs) * windowMs : at;
}
function waitFor3(count2, endsIn, cost, limit) {
  if (cost > limit) return -1;
  return count2 + cost <= limit || cost === 0 ? 0 : endsIn;
}
var readReport3 = (reply, values, params, now, need, later2) => {
  const [limit, windowMs] = params;
  const count2 = atLeastNone(reply, reply.uint56() - later2);
  const start = reply.uint48();
  const endsIn = start + windowMs - now;
  if (endsIn <= 0) throw reply.unreadable("expected a window that has not ended");
  const remaining2 = Math.max(0, limit - count2);
  const reset = count2 === 0 ? 0 : endsIn;
  const wait = (cost) => waitFor3(count2, endsIn, cost, limit);
  if (need === void 0) values.push(remaining2, 0, reset, start);
  else values.push(remaining2, wait(need), reset, wait(remaining2 + 1));
};

// packages/core/src/kernels/log.ts
function firstLive(entries, from, total, at, windowMs) {
  let low = from;
  let step = 1;
  while (low + step <= total && entries[low + step - 1] <= at - windowMs) {
    low += step;
    step *= 2;
  }
  let high = Math.min(low + step, total);
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (entries[middle] > at - windowMs) high = middle;
    else low = middle + 1;
  }
  return low;
}
function waitFor4(entries, total, live, at, cost, limit, windowMs) {
  if (cost > limit) return -1;
  if (live + cost <= limit) return 0;
  return entries[total - (limit - cost + 1)] + windowMs - at;
}
var readReport4 = (reply, values, params, now, need, later2) => {
  const at = reply.uint48();
  const newest = reply.uint48() - 1;
  for (let i = 2; i < params.length; i += 2) {
    const count2 = atLeastNone(reply, reply.uint32() - later2);
    const remaining2 = atLeastNone(reply, params[i] - count2);
    const windowMs = params[i + 1];
    const reset = newest < 0 ? 0 : Math.max(0, newest + windowMs - now);
    if (need === void 0) values.push(remaining2, 0, reset, at);
    else values.push(remaining2, reply.uint56() - 1, reset, reply.uint56() - 1);
  }
};

// packages/core/src/kernels/segments.ts
var STRICT = 0;
var DROPPED = 1;
var WEIGHTED_DOWN = 2;
var WEIGHTED_UP = 3;
var WITH_REFUSALS = 4;
var WIDE = 8;
function leaving(counts, by, segments) {
  let units = 0;
  for (let k = Math.max(0, segments - by); k < segments; k++) units += counts[k];
  return units;
}
function edgeUnits(count2, offset, segmentMs, edge) {
  if (edge === STRICT) return count2;
  if (edge === DROPPED) return 0;
  const share2 = count2 * (segmentMs - offset) / segmentMs;
  return edge === WEIGHTED_DOWN ? Math.floor(share2) : Math.ceil(share2);
}
function offsetFor(count2, room, segmentMs, edge) {
  if (edge === DROPPED || count2 <= room) return 0;
  if (edge === STRICT) return segmentMs;
  if (edge === WEIGHTED_DOWN) return Math.floor(segmentMs * (count2 - room - 1) / count2) + 1;
  return Math.ceil(segmentMs * (count2 - room) / count2);
}
function waitFor5(counts, total, offset, cost, limit, segments, segmentMs, edge) {
  if (cost > limit) return -1;
  if (cost === 0) return 0;
  let inside = total;
  for (let by = 0; by <= segments; by++) {
    if (by > 0) inside -= counts[segments - by];
    if (inside + cost <= limit) {
      const from = offsetFor(counts[segments - by], limit - cost - inside, segmentMs, edge);
      if (from < segmentMs) return Math.max(0, by * segmentMs + from - offset);
    }
  }
  return (segments + 1) * segmentMs - offset;
}
function resetAfter(counts, offset, segments, segmentMs, edge) {
  for (let k = 0; k <= segments; k++) {
    const count2 = counts[k];
    if (count2 > 0) return Math.max(0, (segments - k) * segmentMs + offsetFor(count2, 0, segmentMs, edge) - offset);
  }
  return 0;
}
var readReport5 = (reply, values, _, __, need) => {
  const room = reply.uint56();
  const reset = reply.uint56();
  const segment = reply.uint48();
  if (need === void 0) values.push(room, 0, reset, segment);
  else values.push(room, reply.uint56() - 1, reset, reply.uint56() - 1);
};

// packages/core/src/util/factories.ts
var calls = /* @__PURE__ */ new WeakMap();
function knowFactories(byCall) {
  for (const [call, factory] of Object.entries(byCall)) calls.set(factory, call);
}
function refuseFactory(where, field, value) {
  const call = typeof value === "function" ? calls.get(value) : void 0;
  if (call === void 0) return;
  const [name] = call.split("(", 1);
  wrongPolicy(`${where}: ${field}: write ${call}: expected what ${name} returns, got ${name} itself`);
}

// packages/core/src/util/is-record.ts
function isRecord(value) {
  return typeof value === "object" && value !== null && !(Symbol.iterator in value);
}

// packages/core/src/util/nearest.ts
function nearestOf(name, known2) {
  let nearest;
  let fewest = Number.POSITIVE_INFINITY;
  for (const candidate of known2) {
    const edits = editsBetween(name.slice(0, 40).toLowerCase(), candidate.toLowerCase());
    if (edits < fewest && edits <= Math.max(1, Math.floor(candidate.length / 3))) {
      nearest = candidate;
      fewest = edits;
    }
  }
  return nearest;
}
function editsBetween(a, b) {
  let beforeLast = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = last[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      let edits = Math.min(replaced, last[j] + 1, row[j - 1] + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        edits = Math.min(edits, beforeLast[j - 2] + 1);
      }
      row.push(edits);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length];
}

// packages/core/src/util/option-hints.ts
var WINDOW = { use: "window", how: "window, in milliseconds or as a duration such as '1m'" };
var SECONDS = { use: "window", how: "window, in milliseconds or as a duration such as '60s'" };
var LIMIT = { use: "limit", how: "limit" };
var KEY = { use: "key", how: "key, such as byIp() or (req) => req.user.id" };
var RESPOND = { use: "respond", how: "respond, such as reject({ status: 429, body })" };
var HEADERS = { use: "headers", how: "headers, such as 'draft-6', ['draft-11', 'legacy'] or false" };
var SKIP = { use: "skip", how: "skip, a function of the request" };
var ALLOW = { use: "allow", how: "allow, such as ipRanges([\u2026]) or a function of the request" };
var DENY = { use: "deny", how: "deny, such as ipRanges([\u2026]) or a function of the request" };
var STORE = { use: "store", how: "store: redisStore(client)" };
var DELAY = { use: "respond", how: "respond: delay({ \u2026 })" };
var unavailable = (decide) => ({ use: "unavailable", how: `unavailable: { ${decide} }` });
var count = (outcome) => ({ use: "count", how: `count: { only: ${outcome} }` });
var enforce = (field) => ({ use: "enforce", how: `enforce: { ${field} }` });
var body = (fields) => ({ use: "body", how: `body: { ${fields} }` });
var EARLIER_NAMES = {
  onUnavailable: unavailable("decide"),
  share: unavailable("share"),
  mode: enforce("mode"),
  enforcePercent: enforce("percent"),
  enforceSalt: enforce("salt"),
  reportHeaders: enforce("headers"),
  maxWait: { use: "count", how: "count: { only, within }" },
  maxBodyBytes: body("max"),
  requireLength: body("max, requireLength"),
  timeoutMs: { use: "timeout", how: "timeout" },
  connectTimeoutMs: { use: "connectTimeout", how: "connectTimeout" },
  loadTimeoutMs: { use: "loadTimeout", how: "loadTimeout" },
  lookupTimeoutMs: { use: "lookupTimeout", how: "lookupTimeout" },
  pollMs: { use: "pollEvery", how: "pollEvery" },
  mostHeld: { use: "maxOverrides", how: "maxOverrides" },
  most: { use: "max", how: "max" }
};
var PEER_OPTIONS = {
  windowMs: WINDOW,
  timeWindow: WINDOW,
  ttl: WINDOW,
  interval: WINDOW,
  duration: SECONDS,
  max: LIMIT,
  points: LIMIT,
  maxRequests: LIMIT,
  keyGenerator: KEY,
  id: KEY,
  getTracker: KEY,
  ipv6Subnet: { use: "key", how: "key: byIp({ ipv6Prefix: 64 })" },
  handler: { use: "respond", how: "respond: handler((\u2026, verdict) => \u2026), or respond: reject({ status: 429, body })" },
  requestPropertyName: { use: "requestProperty", how: "requestProperty" },
  message: RESPOND,
  errorMessage: RESPOND,
  statusCode: RESPOND,
  errorResponseBuilder: RESPOND,
  onExceeded: { use: "onVerdict", how: "onVerdict, a function of the request and its verdict" },
  onExceeding: { use: "onVerdict", how: "onVerdict, a function of the request and its verdict" },
  onLimitReached: { use: "onVerdict", how: "onVerdict, a function of the request and its verdict" },
  standardHeaders: HEADERS,
  legacyHeaders: HEADERS,
  enableDraftSpec: HEADERS,
  addHeaders: HEADERS,
  addHeadersOnExceeding: HEADERS,
  disableHeader: HEADERS,
  skipSuccessfulRequests: count("'failure'"),
  skipFailedRequests: count("'success'"),
  requestWasSuccessful: count("(status) => boolean"),
  allowList: ALLOW,
  whitelist: ALLOW,
  whiteList: ALLOW,
  blacklist: DENY,
  blackList: DENY,
  skipIf: SKIP,
  throttlers: { use: "limits", how: "limits, a list such as [perSecond(10), perMinute(200)]" },
  db: STORE,
  driver: STORE,
  redis: STORE,
  client: STORE,
  storeClient: STORE,
  passOnStoreError: unavailable("decide: 'allow'"),
  skipOnError: unavailable("decide: 'allow'"),
  insuranceLimiter: unavailable("decide: 'local'"),
  keyPrefix: { use: "name", how: "name, and redisStore(client, { prefix })" },
  nameSpace: { use: "name", how: "name, and redisStore(client, { prefix })" },
  cache: { use: "store", how: "store: memoryStore({ maxKeys })" },
  delayAfter: DELAY,
  delayMs: DELAY,
  maxDelayMs: DELAY,
  execEvenly: { use: "limits", how: "limits: [leakyBucket({ \u2026, queue: true })]" },
  blockDuration: { use: "limits", how: "limiter.block(identity, { for: '1h' })" },
  maxItems: { use: "maxKeys", how: "maxKeys" }
};
function hintFor(name, known2, options = {}) {
  const { near = nearestOf, prefix = "" } = options;
  const now = replacement(EARLIER_NAMES, name, known2);
  if (now !== void 0) return `use ${prefix}${now}`;
  const meant = near(name, known2);
  return meant === void 0 ? void 0 : `did you mean ${prefix}${meant}?`;
}
function optionHint(field, known2) {
  const other = replacement(PEER_OPTIONS, field, known2);
  return other === void 0 ? hintFor(field, known2) : `use ${other}`;
}
function replacement(names, field, known2) {
  const other = Object.hasOwn(names, field) ? names[field] : void 0;
  return other && known2.includes(other.use) ? other.how : void 0;
}

// packages/core/src/util/validate.ts
function knownOptions(where, options, known2, absent = {}) {
  refusePolluted(where, known2);
  if (!isRecord(options)) invalidPolicy(where, "options", "an object", options);
  for (const [field, value] of Object.entries(options)) {
    if (known2.includes(field)) continue;
    const shown2 = /^\w{1,40}$/.test(field) ? field : show(field);
    const hint = Object.hasOwn(absent, field) ? absent[field] : optionHint(field, known2);
    const instead = hint === void 0 ? ` (the options are ${known2.join(", ")})` : `: ${hint}`;
    wrongPolicy(`${where}: ${shown2}: unknown option${instead}, got ${show(value)}`);
  }
}
function refusePolluted(where, known2) {
  for (const name of known2) {
    if (!Object.hasOwn(Object.prototype, name)) continue;
    const why = "as every object of options would have it: find the package that adds it there";
    wrongPolicy(`${where}: ${name}: expected no property of this name on Object.prototype, ${why}`);
  }
}
function wholeNumber(where, field, value, min, max) {
  if (!Number.isSafeInteger(value) || value < min) {
    invalidPolicy(where, field, `a whole number of at least ${min}`, value);
  }
  if (max !== void 0 && value > max) invalidPolicy(where, field, `at most ${max}`, value);
  return value + 0;
}
function exactProduct(where, field, units, windowMs) {
  if (units * windowMs > Number.MAX_SAFE_INTEGER) {
    const got = `${units} * ${windowMs}: use a shorter window, or fixedWindow, which has no such bound`;
    wrongPolicy(`${where}: ${field}: expected units times window in ms to stay below 2^53, got ${got}`);
  }
}
function oneOf(where, field, value, choices) {
  if (!choices.includes(value)) {
    invalidPolicy(where, field, choices.map((choice) => JSON.stringify(choice)).join(" or "), value);
  }
  return value;
}
function optionalFunction(where, field, value) {
  if (value !== void 0 && typeof value !== "function") invalidPolicy(where, field, "a function", value);
  refuseFactory(where, field, value);
}
function headerName(where, field, value) {
  if (typeof value !== "string" || !/^[A-Za-z0-9_-]{1,64}$/.test(value)) {
    invalidPolicy(where, field, '1 to 64 letters, digits, "_" or "-"', value);
  }
  return value;
}

// packages/core/src/store/cell-kinds.ts
var KIND_OF = {
  gcra: "bucket",
  tokenBucket: "bucket",
  leakyBucket: "bucket",
  fixedWindow: "counter",
  slidingWindow: "segments",
  slidingLog: "log",
  concurrency: "concurrency"
};
var first = (param) => param === 0;
var oneLimit = ([limit = 0, windowMs = 0]) => [[limit, windowMs, limit]];
var asTheyAre = (numbers) => numbers;
var NO_RULES = {
  tighten: () => void 0,
  windowLength: () => Number.POSITIVE_INFINITY,
  windowEnd: () => Number.POSITIVE_INFINITY,
  receiptAlone: (_, receipt) => receipt
};
var windowBefore = (_, { windowMs, at, resetMs }) => Math.min(at, at + resetMs - windowMs);
var CELL_KINDS = {
  // Parameters: limit, windowMs, capacity, stepMs.
  bucket: {
    isUnits: (param) => param === 0 || param === 2,
    hasPermits: false,
    ids: {
      bucket: {
        numbers: 4,
        params: asTheyAre,
        limits: ([limit = 0, windowMs = 0, capacity = 0]) => [[limit, windowMs, capacity]]
      }
    },
    canBeJoint: true,
    readReport,
    returnsMore(params, units) {
      const [limit, windowMs, , stepMs] = params;
      return stepMs === 1 ? Math.ceil(units * windowMs / limit) : Math.ceil(units / limit) * windowMs;
    },
    chargedAt(params, { used: used2, at, resetMs }) {
      const [limit, windowMs, , stepMs] = params;
      return stepMs === 1 ? Math.min(at, at + resetMs - Math.floor(used2 * windowMs / limit)) : at;
    },
    lease: {
      tighten(where, params, ttlMs) {
        const [limit, windowMs, capacity, stepMs] = params;
        if (stepMs !== 1 || capacity === 0) return void 0;
        const left = capacity - Math.ceil(ttlMs * limit / windowMs);
        if (left >= 1) return { params: [limit, windowMs, left, stepMs], capacity: left };
        throw new SluiceError(
          "INVALID_POLICY",
          `${where}: lease: ttl: expected one in which less than the capacity of ${capacity} comes back, got ${ttlMs} ms`
        );
      },
      windowLength: intervalLength,
      // Infinite without intervals.
      windowEnd: (params, _, now) => (Math.floor(now / intervalLength(params)) + 1) * intervalLength(params),
      receiptAlone: (params, receipt, units) => Math.min(receipt, units * params[1])
    }
  },
  // Parameters: limit, windowMs, whether refusals count (1 or 0), whether windows start at clock multiples (1 or 0).
  counter: {
    isUnits: first,
    hasPermits: false,
    ids: {
      fixed: { numbers: 2, params: ([limit = 0, windowMs = 0]) => [limit, windowMs, 0, 1], limits: oneLimit },
      opened: { numbers: 2, params: ([limit = 0, windowMs = 0]) => [limit, windowMs, 0, 0], limits: oneLimit }
    },
    canBeJoint: true,
    readReport: readReport3,
    countRefusals: countAllOfWindow,
    countInFull: countAllOfWindow,
    // Clock-aligned windows begin by this process's clock, too.
    chargedAt: (params, use) => params[3] === 1 ? use.at : windowBefore(params, use),
    lease: {
      ...NO_RULES,
      windowLength: ([, windowMs]) => windowMs,
      // The receipt is the start of the window.
      windowEnd: ([, windowMs], receipt) => receipt + windowMs
    }
  },
  // Parameters: limit, windowMs, segments, edge mode (plus `WITH_REFUSALS` if refusals count).
  segments: {
    isUnits: first,
    hasPermits: false,
    ids: { sliding: { numbers: 4, params: asTheyAre, limits: oneLimit } },
    canBeJoint: true,
    readReport: readReport5,
    countRefusals: countAllOfSegments,
    countInFull: countAllOfSegments,
    widen: (params) => params.with(3, params[3] + WIDE),
    chargedAt: windowBefore,
    lease: {
      ...NO_RULES,
      windowLength: segmentLength,
      // The receipt is the number of the segment.
      windowEnd: (params, receipt) => (receipt + 1) * segmentLength(params)
    }
  },
  // Parameters: the largest limit, the longest window, then limit and window of each limit that shares the log.
  log: {
    isUnits: (param) => param % 2 === 0,
    hasPermits: false,
    ids: { log: { numbers: 2, params: paramsOfLog, limits: limitsOfLog } },
    canBeJoint: false,
    readReport: readReport4,
    chargedAt: windowBefore,
    lease: {
      ...NO_RULES,
      tighten(where, params, ttlMs) {
        const [limit = 0, windowMs = 0] = params;
        exactProduct(where, "lease", limit, windowMs + ttlMs);
        return { params: params.map((param, i) => i % 2 === 0 ? param : param + ttlMs), capacity: limit };
      }
    }
  },
  // Parameters: limit, ttlMs.
  concurrency: {
    isUnits: first,
    hasPermits: true,
    ids: { concurrency: { numbers: 2, params: asTheyAre, limits: oneLimit } },
    canBeJoint: false,
    readReport: readReport2,
    chargedAt: windowBefore,
    lease: NO_RULES
  }
};
function paramsOfLog(numbers) {
  const limits = limitsOfLog(numbers);
  return [Math.max(...limits.map(([limit]) => limit)), Math.max(...limits.map(([, windowMs]) => windowMs)), ...numbers];
}
function limitsOfLog(numbers) {
  return Array.from({ length: Math.floor(numbers.length / 2) }, (_, i) => {
    const [limit = 0, windowMs = 0] = numbers.slice(2 * i);
    return [limit, windowMs, limit];
  });
}
var KINDS_BY_ALGORITHM = new Map(
  Object.entries(KIND_OF).map(([algorithm, kind]) => [algorithm, CELL_KINDS[kind]])
);
function hasPermits(algorithm) {
  return KINDS_BY_ALGORITHM.get(algorithm)?.hasPermits === true;
}
function intervalLength([, , , stepMs]) {
  return stepMs === 1 ? Number.POSITIVE_INFINITY : stepMs;
}
function countAllOfWindow(params) {
  return params.with(2, 1);
}
function countAllOfSegments(params) {
  return params.with(3, params[3] + WITH_REFUSALS);
}
function segmentLength([, windowMs, segments]) {
  return windowMs / segments;
}

// packages/core/src/util/listeners.ts
import { channel } from "node:diagnostics_channel";

// packages/core/src/util/process-warning.ts
var EXPLAINED_IN = "dist/ERRORS.md";
function processWarning(code, message) {
  process.emitWarning(escapeControls(message), {
    type: "SluiceWarning",
    code,
    detail: `See ${EXPLAINED_IN}#${code.toLowerCase()} of your @sluice package`
  });
}

// packages/core/src/util/thenable.ts
function isThenable(value) {
  try {
    return typeof value?.then === "function";
  } catch {
    return false;
  }
}

// packages/core/src/util/listeners.ts
var watchers = { total: 0, isCounting: false, ofDecisions: 0 };
var ON_CHANNELS = [
  "decision",
  "refused",
  "strike",
  "ban",
  "block",
  "unblock",
  "ban-evicted",
  "waited",
  "store",
  "policies-reloaded",
  "warning"
];
var channels = new Map(ON_CHANNELS.map((name) => [name, channel(`sluice:${name}`)]));
var decisions = channels.get("decision");
var refusals = channels.get("refused");
function isWatched() {
  return watchers.total !== 0 || decisions.hasSubscribers || refusals.hasSubscribers;
}
var OF_DECISIONS = ["decision", "refused", "near-limit"];
function hasDecisionListeners() {
  return watchers.ofDecisions !== 0 || decisions.hasSubscribers || refusals.hasSubscribers;
}
var WARN_EVERY_MS = 6e4;
var NONE = [];
var Listeners = class {
  #where;
  #names;
  /** Undefined for the listeners of the whole process. */
  #wider;
  /** Lists are replaced, not changed: an event that is being sent goes on to those that listened before. */
  #byName;
  isSilent = false;
  /** `names`: the events that there are here. */
  constructor(where, names, wider = everywhere) {
    this.#where = where;
    this.#names = names;
    this.#wider = wider ?? void 0;
  }
  /**
   * Returns a function that ends it. A second call of that does nothing.
   *
   * @throws SluiceError `INVALID_POLICY`
   */
  on(name, listener) {
    const where = `${this.#where}: on`;
    if (!this.#names.includes(name)) invalidPolicy(where, "event", `one of ${this.#names.join(", ")}`, name);
    if (typeof listener !== "function") invalidPolicy(where, name, "a function", listener);
    const entry = { listener, isOn: true, warnedAt: Number.NEGATIVE_INFINITY };
    this.#byName ??= /* @__PURE__ */ new Map();
    const byName = this.#byName;
    byName.set(name, [...byName.get(name) ?? NONE, entry]);
    const ofDecisions = OF_DECISIONS.includes(name) ? 1 : 0;
    watchers.total++;
    watchers.ofDecisions += ofDecisions;
    return () => {
      if (!entry.isOn) return;
      entry.isOn = false;
      watchers.total--;
      watchers.ofDecisions -= ofDecisions;
      const others = (byName.get(name) ?? NONE).filter((other) => other !== entry);
      if (others.length > 0) byName.set(name, others);
      else byName.delete(name);
    };
  }
  hasListeners(name) {
    if (this.#byName?.has(name)) return true;
    return this.#wider ? this.#wider.hasListeners(name) : channels.get(name)?.hasSubscribers === true;
  }
  send(name, event) {
    for (const entry of this.#byName?.get(name) ?? NONE) {
      if (entry.isOn) this.#call(entry, name, event);
    }
    if (this.#wider) this.#wider.send(name, event);
    else channels.get(name)?.publish(event);
  }
  #call(entry, name, event) {
    try {
      const returned = entry.listener(event);
      if (returned !== void 0 && isThenable(returned)) {
        Promise.resolve(returned).catch((error) => this.#failed(entry, name, error));
      }
    } catch (error) {
      this.#failed(entry, name, error);
    }
  }
  #failed(entry, name, error) {
    const now = performance.now();
    if (this.isSilent || now - entry.warnedAt < WARN_EVERY_MS) return;
    entry.warnedAt = now;
    const what = error instanceof Error ? error.message : String(error);
    processWarning("SLUICE_LISTENER_FAILED", `${this.#where}: listener of "${name}": ${what}`);
  }
};
var everywhere = new Listeners("events", [...ON_CHANNELS, "near-limit"], null);

// packages/core/src/util/warnings.ts
var LIMITER_WARNINGS = [
  "SLUICE_BAN_OPEN_PROXY",
  "SLUICE_BLOCK_ALLOWED",
  "SLUICE_COUNT_FAILED",
  "SLUICE_INVALID_REQUEST",
  "SLUICE_LISTENER_FAILED",
  "SLUICE_LIST_KIND",
  "SLUICE_MANY_LIMITERS",
  "SLUICE_NO_USER",
  "SLUICE_ONE_CLIENT",
  "SLUICE_OPEN_PROXY",
  "SLUICE_SAME_LIMITER_TWICE",
  "SLUICE_SAME_NAME",
  "SLUICE_UNGROUPED_IPV6",
  "SLUICE_UNTRUSTED_PROXY"
];
var STORE_WARNINGS = [
  "SLUICE_BANS_EVICTED",
  "SLUICE_BLOCKS_DENIED",
  "SLUICE_BLOCKS_FULL",
  "SLUICE_BLOCKS_RESTORED",
  "SLUICE_EVICTION",
  "SLUICE_LISTENER_FAILED",
  "SLUICE_PERSIST_FAILED",
  "SLUICE_STORE_UNAVAILABLE"
];
var OTHER_WARNINGS = [
  "SLUICE_AMBIGUOUS_ROUTE",
  "SLUICE_LIST_FAILED",
  "SLUICE_NO_METER_PROVIDER",
  "SLUICE_OVERRIDE_FAILED",
  "SLUICE_OVERRIDE_KIND",
  "SLUICE_POLICIES_FAILED",
  "SLUICE_SHORT_WINDOW"
];
var ALL_WARNINGS = [.../* @__PURE__ */ new Set([...LIMITER_WARNINGS, ...STORE_WARNINGS, ...OTHER_WARNINGS])];
var Warnings = class {
  #silenced;
  /** Bound, so that it can be passed on. */
  emit;
  /**
   * `codes`: the codes of this source. `listeners`: of the limiter or store that they are about. `isNew`: false where another
   * of these has emitted the same warning already.
   *
   * @throws SluiceError `INVALID_POLICY`
   */
  constructor(where, codes, option = {}, listeners = new Listeners(where, ["warning"]), isNew = () => true) {
    if (!isRecord(option)) {
      invalidPolicy(where, "warnings", `an object such as { ${codes[0]}: false }`, option);
    }
    for (const [code, emitted] of Object.entries(option)) {
      if (!codes.includes(code)) throw unknownCode(where, code, codes);
      if (typeof emitted !== "boolean") invalidPolicy(where, `warnings: ${code}`, "true or false", emitted);
    }
    this.#silenced = new Set(codes.filter((code) => option[code] === false));
    if (this.#silenced.has("SLUICE_LISTENER_FAILED")) listeners.isSilent = true;
    this.emit = (code, message) => {
      if (!this.#silenced.has(code) && isNew(code, message)) emitWarning(code, message, listeners);
    };
  }
};
function unknownCode(where, code, codes) {
  const hint = ALL_WARNINGS.includes(code) ? `it is emitted elsewhere; silence it with node --disable-warning=${code}` : hintFor(code, codes);
  const instead = hint === void 0 ? ` (the codes are ${codes.join(", ")})` : `: ${hint}`;
  return new SluiceError("INVALID_POLICY", `${where}: warnings: ${show(code)}: unknown code${instead}`);
}
function emitWarning(code, message, listeners = everywhere) {
  processWarning(code, message);
  if (listeners.hasListeners("warning")) listeners.send("warning", { code, message });
}

// packages/core/src/util/duration.ts
var UNIT_MS = { ms: 1, s: 1e3, m: 6e4, h: 36e5, d: 864e5 };
var MAX_DURATION_MS = 100 * 365 * 864e5;
var FOR_EVER_MS = 2 * MAX_DURATION_MS;
function durationMs(where, field, value, alternative = "") {
  const ms = typeof value === "string" ? parse(value) : value;
  if (typeof ms === "number" && Number.isInteger(ms) && ms >= 1 && ms <= MAX_DURATION_MS) return ms;
  const isOutOfRange = typeof ms === "number" && (ms < 1 || ms > MAX_DURATION_MS);
  const range = isOutOfRange ? ", from 1 ms to 100 years (36500d)" : "";
  return invalidPolicy(
    where,
    field,
    `whole milliseconds or a duration such as "30s" (units: ms, s, m, h, d)${range}${alternative}`,
    value
  );
}
function spanMs(where, field, value, alternative = "") {
  const ms = durationMs(where, field, value, alternative);
  if (ms < 1e3 || COMMON_SPANS_IN_SECONDS.has(ms)) warnOfSeconds(where, field, value);
  return ms;
}
function waitMs(where, field, value, alternative = "") {
  const ms = durationMs(where, field, value, alternative);
  if (ms < 100) warnOfSeconds(where, field, value);
  return ms;
}
function waitOrNever(where, field, value) {
  return value === Number.POSITIVE_INFINITY ? value : waitMs(where, field, value, OR_INFINITY);
}
function spanOrForEver(where, field, value) {
  return value === Number.POSITIVE_INFINITY ? FOR_EVER_MS : spanMs(where, field, value, OR_INFINITY);
}
var HOUR_S = 3600;
var DAY_S = 86400;
var COMMON_SPANS_IN_SECONDS = /* @__PURE__ */ new Set([
  ...[1200, 1800, 2700, 5400],
  ...[1, 2, 3, 4, 6, 8, 12].map((hours) => hours * HOUR_S),
  ...[1, 2, 3, 4, 5, 6, 7, 14, 28, 30, 31, 60, 90, 180, 365].map((days) => days * DAY_S)
]);
var warned = /* @__PURE__ */ new Set();
function warnOfSeconds(where, field, value) {
  if (typeof value !== "number" || warned.has(value)) return;
  warned.add(value);
  const message = `${where}: ${field}: ${value} is ${value} ms: write '${value}s' for seconds, or '${value}ms' if that is meant`;
  emitWarning("SLUICE_SHORT_WINDOW", message);
}
function isForEver(ms) {
  return ms > MAX_DURATION_MS;
}
var OR_INFINITY = ", or Infinity";
function parse(text) {
  const [, amount3, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? [];
  const ms = Number(amount3) * (UNIT_MS[unit ?? ""] ?? Number.NaN);
  return Math.abs(ms - Math.round(ms)) < 1e-6 ? Math.round(ms) : Number.NaN;
}
function durationText(ms) {
  for (const unit of ["d", "h", "m", "s"]) {
    const size = UNIT_MS[unit];
    if (ms % size === 0) return `${ms / size}${unit}`;
  }
  return `${ms}ms`;
}

// packages/core/src/util/abort-listeners.ts
var sharedBy = /* @__PURE__ */ new WeakMap();
function onAbort(signal, listener) {
  const { listeners, dispatch } = sharedBy.get(signal) ?? share(signal);
  if (listeners.size === 0) signal.addEventListener("abort", dispatch);
  listeners.add(listener);
  return () => {
    if (listeners.delete(listener) && listeners.size === 0) signal.removeEventListener("abort", dispatch);
  };
}
function share(signal) {
  const listeners = /* @__PURE__ */ new Set();
  const dispatch = () => {
    for (const listener of [...listeners]) if (listeners.has(listener)) listener();
  };
  const shared = { listeners, dispatch };
  sharedBy.set(signal, shared);
  return shared;
}

// packages/core/src/util/timing.ts
var PROCESS_TIMING = {
  now: () => performance.now(),
  setTimeout: (callback, ms) => setTimeout(callback, ms),
  clearTimeout: (timer) => clearTimeout(timer),
  setInterval: (callback, ms) => setInterval(callback, ms),
  clearInterval: (timer) => clearInterval(timer)
};

// packages/core/src/util/pause.ts
var LONGEST_TIMER_MS = 2 ** 31 - 1;
function pause(ms, signal, onWaker, timing = PROCESS_TIMING) {
  return new Promise((resolve, reject) => {
    const end = (finish) => () => {
      timing.clearTimeout(timer);
      ignoreAbort?.();
      forget?.();
      finish();
    };
    const wake = end(resolve);
    const abort = end(() => reject(signal?.reason));
    const timer = timing.setTimeout(wake, Math.min(ms, LONGEST_TIMER_MS));
    const forget = onWaker?.(wake);
    const ignoreAbort = signal && onAbort(signal, abort);
    if (signal?.aborted) abort();
  });
}

// packages/core/src/store/identity.ts
var LONGEST_KIND = 256;
var LONGEST_VALUE = 256;
var SIMPLE_KIND = /^(?!__proto__$)[A-Za-z0-9_.:~%-]+$/;
function isKind(kind) {
  if (typeof kind !== "string" || kind.length > LONGEST_KIND) return false;
  return kind.split("+").every((part3) => SIMPLE_KIND.test(part3));
}
function startOf2(kind) {
  return `${kind}=`;
}
function valueStart(identity) {
  const end = identity.indexOf("=");
  return end > 0 && isKind(identity.slice(0, end)) ? end + 1 : 0;
}
function afterKind(text) {
  return text.indexOf("=") + 1;
}
function identityIn(text) {
  const { kind, value } = textValue(text);
  return { kind, value: kind.includes("+") && !isHash(value) ? split(value) : value };
}
function textValue(text) {
  const end = text.indexOf("=");
  return { kind: text.slice(0, end), value: text.slice(end + 1) };
}
function joined(values) {
  const lengths = values.map(({ length }) => length);
  if (lengths.reduce((sum, length) => sum + length, 0) > LONGEST_VALUE) return `|${lengths.join()}|${values.join("")}`;
  return values.map((value) => value.replace(/[\\|]/g, "\\$&")).join("|");
}
function split(text) {
  const parts2 = text.match(/(?:\\.|[^\\|])+/gs) ?? [];
  return parts2.map((part3) => part3.replace(/\\(.)/gs, "$1"));
}
var HASH_START = "#";
var HASH_LENGTH = 23;
function isHash(text) {
  return text.length === HASH_LENGTH && text.startsWith(HASH_START);
}

// packages/core/src/store/store.ts
var MAX_RUNGS = 32;
var EVERY_POLICY = ".store";
var CONSUME = 0;
var PEEK = 1;
var CHARGE = 2;
var REFUND = 3;
var RELEASE = 4;
var RENEW = 5;
var DEBIT = 6;
var STRIDE = 4;
function refusalBy(block, now) {
  return { now, allowed: false, values: [], offset: 0, block };
}
function receiptsOf({ cells }, { values, offset }) {
  let at = offset + STRIDE - 1;
  return cells.map(({ limits }) => {
    const receipt = values[at];
    at += STRIDE * limits.length;
    return receipt;
  });
}
function isImpossible({ plan, costs, needs }) {
  return plan.cells.some(
    (cell, c) => cell.limits.some(({ capacity }) => (needs?.[c] ?? costs[c]) > capacity)
  );
}

// packages/core/src/util/hash.ts
import { createHash, hash } from "node:crypto";
function hashOf(text) {
  return `#${createHash("sha256").update(text, "utf16le").digest("base64url").slice(0, 22)}`;
}
function sha256Of(text) {
  return hash("sha256", text, "base64url");
}
function shareOf(text) {
  return hash32(text, 0) / 2 ** 32;
}
function hash32(text, seed) {
  let mixed = seed ^ 2166136261;
  for (let i = 0; i < text.length; i++) mixed = Math.imul(mixed ^ text.charCodeAt(i), 16777619);
  mixed = Math.imul(mixed ^ mixed >>> 16, 2246822507);
  mixed = Math.imul(mixed ^ mixed >>> 13, 3266489909);
  return (mixed ^ mixed >>> 16) >>> 0;
}

// packages/core/src/verdict/limit-report.ts
var INSPECT = /* @__PURE__ */ Symbol.for("nodejs.util.inspect.custom");
var Report = class {
  name;
  algorithm;
  limit;
  windowMs;
  capacity;
  unit;
  allowed;
  remaining;
  retryAfterMs;
  resetAfterMs;
  #identity;
  constructor({ name, algorithm, limit, windowMs, capacity, unit }, remaining2, retryMs, resetMs, identity) {
    this.name = name;
    this.algorithm = algorithm;
    this.limit = limit;
    this.windowMs = windowMs;
    this.capacity = capacity;
    this.unit = unit;
    this.allowed = retryMs === 0;
    this.remaining = remaining2;
    this.retryAfterMs = retryMs < 0 ? void 0 : retryMs;
    this.resetAfterMs = resetMs;
    this.#identity = identity;
  }
  get key() {
    return identityIn(this.#identity);
  }
  /** The object that `console.log` shows. */
  [INSPECT]() {
    return { ...this, key: this.key };
  }
};
function longestRefusal(limits) {
  let longest = -1;
  let found = -1;
  for (let i = 0; i < limits.length; i++) {
    const { allowed, retryAfterMs = Number.POSITIVE_INFINITY } = limits[i];
    if (allowed || retryAfterMs <= longest) continue;
    longest = retryAfterMs;
    found = i;
  }
  return found;
}
function leftOf(remaining2, cell, reserved) {
  return reserved ? Math.max(0, remaining2 - reserved[cell]) : remaining2;
}
function spreadFor({ spreadMs }, { plan, identities }, cell) {
  if (spreadMs === void 0) return 0;
  const identity = identities[plan.cells[cell].identity];
  return Math.floor(shareOf(`${plan.policy}
${identity}`) * spreadMs);
}
function later(ms, spread) {
  return ms > 0 ? ms + spread : ms;
}
function useWithout({ plan }, { values, offset }, i, units) {
  const { resolved, positions } = plan;
  const { capacity } = resolved[i];
  const used2 = capacity - values[offset + positions[i] * STRIDE] - units;
  if (capacity > 0) return used2 / capacity;
  return units < 0 ? Number.POSITIVE_INFINITY : 1;
}
function unitsOf(units, { plan }, i) {
  return units[plan.cellOf[i]];
}
function reportsOf(request, { values, offset }, reserved) {
  const { plan, identities } = request;
  const { cells, resolved, positions, cellOf: cellOf2 } = plan;
  return resolved.map((limit, i) => {
    const at = offset + positions[i] * STRIDE;
    const cell = cellOf2[i];
    const remaining2 = leftOf(values[at], cell, reserved);
    const identity = identities[cells[cell].identity];
    const spread = spreadFor(limit, request, cell);
    const [retryMs, resetMs] = [later(values[at + 1], spread), later(values[at + 2], spread)];
    return new Report(limit, remaining2, retryMs, resetMs, identity);
  });
}
function queueDelay(debt, cost, limit) {
  const ahead = debt - cost * limit.windowMs;
  return ahead > 0 ? Math.ceil(ahead / limit.limit) : 0;
}

// packages/core/src/verdict/decision.ts
var REFUNDED = /* @__PURE__ */ new Set();
function decisionOn(request, result, by) {
  return { request, result, by, settled: void 0, reports: void 0 };
}
function isCharged({ request, result, by }) {
  return result.allowed && request.op !== PEEK && by.store !== void 0;
}
function isHeld(decision) {
  return isCharged(decision) && decision.settled !== REFUNDED;
}
function isOfLimits({ result, by }) {
  return !result.block && !by.list && by.tryAgainMs === void 0;
}
function reportsIn(decision) {
  const { request, result, by } = decision;
  decision.reports ??= isOfLimits(decision) ? reportsOf(request, result, by.reserved) : [];
  return decision.reports;
}
function unitsIn(decision, isCharging) {
  const { costs, plan } = decision.request;
  const { cellOf: cellOf2 } = plan;
  const units = /* @__PURE__ */ new Map();
  for (const [i, { unit, remaining: remaining2 }] of reportsIn(decision).entries()) {
    const cost = isCharging ? costs[cellOf2[i]] : 0;
    const other = units.get(unit) ?? { cost, remaining: remaining2 };
    units.set(unit, { cost: Math.max(cost, other.cost), remaining: Math.min(remaining2, other.remaining) });
  }
  return Object.fromEntries(units);
}
function shownLimit({ request, result: { values, offset }, by: { reserved } }) {
  const { resolved, positions, cellOf: cellOf2, units } = request.plan;
  const countsRequests = units.includes("requests");
  let [shown2, least] = [0, Number.POSITIVE_INFINITY];
  for (let i = 0; i < resolved.length; i++) {
    const { unit, capacity } = resolved[i];
    if (countsRequests && unit !== "requests") continue;
    const left = leftOf(values[offset + positions[i] * STRIDE], cellOf2[i], reserved);
    const rank = countsRequests ? left : left / Math.max(1, capacity);
    if (rank < least) [shown2, least] = [i, rank];
  }
  return shown2;
}
function identitiesIn({ request: { identities } }) {
  return identities.length === 1 ? identities : [...new Set(identities)];
}
function sourceOf({ result, by: { kind, isOfResponse } }) {
  if (isOfResponse) return "response";
  if (kind === "decided") return result.source ?? "store";
  return kind === "listed" ? "list" : "local";
}
function useOf({ request, result }, i) {
  return useWithout(request, result, i, 0);
}
function useBefore({ request, result }, i) {
  return useWithout(request, result, i, unitsOf(request.costs, request, i));
}
function refusedBy(decision) {
  const { plan, identities } = decision.request;
  const { cells, cellOf: cellOf2, definitions } = plan;
  const limits = reportsIn(decision);
  const isByLimit = limits.some(({ allowed }) => !allowed);
  const refused = /* @__PURE__ */ new Map();
  for (const [i, cell] of cellOf2.entries()) {
    if (isByLimit && limits[i]?.allowed) continue;
    const policy = definitions[i]?.policy?.split(".", 1)[0] ?? plan.policy;
    const identity = identities[cells[cell].identity];
    refused.set(policy, (refused.get(policy) ?? /* @__PURE__ */ new Set()).add(identity));
  }
  return refused;
}
function maxToSettle(decision) {
  const { request, result, by } = decision;
  if (!result.allowed || by.store === void 0) return void 0;
  if (request.op === PEEK) return 0;
  const { units } = request.plan;
  const requests = request.costs.filter((_, c) => units[c] === "requests");
  return Math.max(...requests.length > 0 ? requests : [1, ...request.costs]);
}
function checkActualCost(where, actualCost, max = Number.POSITIVE_INFINITY) {
  const isUnits = Number.isSafeInteger(actualCost) && actualCost >= 0;
  if (isUnits && actualCost <= max) return actualCost;
  const range = max === Number.POSITIVE_INFINITY ? "of at least 0" : `from 0 to the ${max} charged`;
  throw new SluiceError(
    "INVALID_COST",
    `${where}: actual cost: expected a whole number ${range}, got ${show(actualCost)}`
  );
}

// packages/core/src/verdict/verdict.ts
var Shown = { Verdict: class {
} };
var DECISION = /* @__PURE__ */ Symbol("decision");
var Verdict = class {
  /** Whether this request may proceed. */
  allowed;
  /** The name of the policy that decided. */
  policy;
  /**
   * `decided` by the store's state; `listed`: by a list, without a request to the store; `unavailable` where the store could not be
   * reached: by this process alone, or by nothing. Where no limit decided there are no `limits`, and
   * `remaining` and `resetAfterMs` are 0.
   */
  kind;
  /** The reason of a refusal; undefined when allowed. `left`: the client left while the request waited, which is no refusal. */
  reason;
  /**
   * Whole requests that would be admitted right now: the minimum over the limits that count requests. Where none does, the units
   * left of the limit that has the smallest share left.
   */
  remaining;
  /**
   * Milliseconds until this same cost would be admitted, with no other traffic. 0 when allowed. Undefined when it never will be
   * (`impossible`, or blocked for ever), or when the time is unknown (`denied`). Exact, not a hint, unless the reason
   * is `unavailable`. With `spread`, later by less than that.
   */
  retryAfterMs;
  /** Milliseconds until every limit is completely restored: the maximum over the limits. */
  resetAfterMs;
  /**
   * Milliseconds that an admitted request has to wait for its turn in a queueing limit, else 0. The middleware and `acquire` may
   * exchange turns between the clients that wait.
   */
  delayMs;
  /** The reason and duration of the block, when `reason` is `blocked`. */
  block;
  /** The ban, when `reason` is `banned`. */
  ban;
  /** The list that decided, when `kind` is `listed`. It allowed or denied the request, and nothing was charged. */
  list;
  /** Units charged to the limit of `remaining`; 0 for a peek or a refusal. */
  cost;
  /** The tier whose limits decided; undefined without tiers. */
  tier;
  /** The priority of the request; 0 unless `priority` sets it. */
  priority;
  /** Whether the handler runs in spite of the refusal, and is to do less than usual: see `degrade`. */
  degraded;
  /** Whether it is not enforced: `enforce: { mode: 'report' }`, or a key outside of `enforce.percent`. */
  reported;
  #decision;
  /** @internal */
  constructor(decision, marks = NO_MARKS) {
    const { request, result, by } = decision;
    const plan = request.plan;
    let { allowed } = result;
    let remaining2;
    let retryMs;
    let resetMs;
    let delayMs = 0;
    let cell = 0;
    if (plan.isSimple && marks === NO_MARKS && !by.reserved && isOfLimits(decision)) {
      const { values, offset } = result;
      remaining2 = values[offset];
      retryMs = values[offset + 1];
      resetMs = values[offset + 2];
    } else ({ allowed, remaining: remaining2, retryMs, resetMs, delayMs, cell } = summaryOf(decision, marks));
    this.allowed = allowed;
    this.policy = request.plan.policy;
    this.kind = by.kind;
    this.reason = allowed ? void 0 : refusalReason(decision, marks, retryMs < 0);
    this.remaining = remaining2;
    this.retryAfterMs = retryMs < 0 ? void 0 : retryMs;
    this.resetAfterMs = resetMs;
    this.delayMs = delayMs;
    const { block } = result;
    this.block = block?.ban ? void 0 : block && shownBlock(block);
    this.ban = block?.ban && banReport(result.now, block);
    this.list = by.list;
    this.cost = isHeld(decision) ? request.costs[cell] : 0;
    this.tier = by.tier;
    this.priority = by.priority;
    this.degraded = marks.degraded === true;
    this.reported = marks.reported === true;
    this.#decision = decision;
  }
  /**
   * One report per limit, in written order; none when blocked, or when nothing could decide.
   * They are made at the first read, so a copy by `{ ...verdict }` lacks them; `toJSON()` has them.
   */
  get limits() {
    return reportsIn(this.#decision);
  }
  /**
   * The keys of the request, each once; those of a blocked client too. Not in its JSON nor in copies by
   * `{ ...verdict }`, which may go to clients.
   */
  get keys() {
    return identitiesIn(this.#decision).map(identityIn);
  }
  /**
   * The id of the charge, if the policy has `charges`: an opaque text, by which `settle`, `refund`, `release` and `renew` of the limiter
   * change the charge in any process. Undefined where nothing was charged. Whoever has it can change the charge, so it is neither in
   * its JSON nor in copies by `{ ...verdict }`, which may go to clients.
   */
  get id() {
    return this.#decision.result.id;
  }
  /** The charged and the remaining units of each unit that limits count. Made at the first read, as `limits`. */
  get units() {
    return unitsIn(this.#decision, this.allowed && isCharged(this.#decision));
  }
  /** All properties except the keys, as plain data. */
  toJSON() {
    return { ...this, limits: this.limits, units: this.units };
  }
  /** @internal The object that `console.log` shows: the same data, under the name of this class. */
  [INSPECT]() {
    return Object.assign(new Shown.Verdict(), this.toJSON());
  }
  /** @internal */
  get [DECISION]() {
    return this.#decision;
  }
  /**
   * Replaces the estimated cost with the actual one, each unit once: the rest is refunded, less the units that time has already
   * restored. A number is of requests, and at most what was charged. Units by name, such as `{ tokens: 640 }`, may exceed that: the
   * difference is charged at once, whatever room there is. Permits stay.
   *
   * The first of `settle` and `refund` counts; the second does nothing.
   * Resolves to whether anything was refunded or charged; false for a refusal.
   *
   * While the store is away nothing is refunded or charged, then or later.
   *
   * @throws SluiceError `INVALID_COST` for a number above the charge, for units that no limit counts, and for permits
   */
  async settle(actual) {
    return this.#decision.by.charges.settle(this.#decision, actual);
  }
  /**
   * A meter that charges units while they are produced, such as the tokens of a stream. It uses up what the request was charged for
   * the unit first. One for each unit of a verdict.
   *
   * @example const meter = req.rateLimit.meter('tokens')
   * @throws SluiceError `INVALID_COST` for a unit that no limit counts, for bytes and permits; `INVALID_POLICY`
   */
  meter(unit, options = {}) {
    const goesOn = this.reported || this.degraded ? "beyond" : this.allowed;
    return this.#decision.by.charges.meter(this.#decision, unit, options, goesOn);
  }
};
var NO_MARKS = {};
function marked(verdict, marks) {
  return new Verdict(verdict[DECISION], marks);
}
function served(verdict) {
  if (verdict.reason !== "impossible" || verdict.reported) return verdict;
  return marked(verdict, { degraded: verdict.degraded, isServed: true });
}
function banReport(now, { ban, reason, remainingMs }) {
  return ban && { rung: ban.rung, strikes: ban.strikes, until: now + remainingMs, reason };
}
function shownBlock(block) {
  return isForEver(block.remainingMs) ? { ...block, remainingMs: Number.POSITIVE_INFINITY } : block;
}
function isBarred({ reason }) {
  return reason === "blocked" || reason === "banned" || reason === "denied";
}
function summaryOf(decision, marks) {
  const { request, result, by } = decision;
  const { block, values, offset } = result;
  const plan = request.plan;
  const allowed = result.allowed && marks.waitMs === void 0 && !marks.hasLeft;
  let retryMs = marks.waitMs ?? result.behindMs ?? 0;
  if (!isOfLimits(decision)) {
    const untilMs = block?.remainingMs ?? by.tryAgainMs ?? (allowed ? 0 : Number.POSITIVE_INFINITY);
    retryMs = isForEver(untilMs) ? -1 : Math.max(untilMs, retryMs);
    return { allowed, remaining: 0, retryMs, resetMs: 0, delayMs: 0, cell: 0 };
  }
  const { resolved, positions, cellOf: cellOf2 } = plan;
  const isCharging = isHeld(decision);
  const shown2 = shownLimit(decision);
  let remaining2 = 0;
  let [resetMs, delayMs] = [0, 0];
  for (let i = 0; i < resolved.length; i++) {
    const limit = resolved[i];
    const at = offset + positions[i] * STRIDE;
    const cell = cellOf2[i];
    if (i === shown2) remaining2 = leftOf(values[at], cell, by.reserved);
    const spread = spreadFor(limit, request, cell);
    const retry = later(values[at + 1], spread);
    retryMs = retry < 0 || retryMs < 0 ? -1 : Math.max(retryMs, retry);
    resetMs = Math.max(resetMs, later(values[at + 2], spread));
    const own = isCharging ? request.costs[cell] : 0;
    if (limit.queue && allowed) delayMs = Math.max(delayMs, queueDelay(values[at + 3], own, limit));
  }
  return { allowed, remaining: remaining2, retryMs, resetMs, delayMs, cell: cellOf2[shown2] };
}
function refusalReason({ result: { block, allowed }, by: { list, tryAgainMs } }, { hasLeft, isServed }, isNever) {
  if (hasLeft) return "left";
  if (list) return "denied";
  if (block) return block.ban ? "banned" : "blocked";
  if (isNever && !isServed) return "impossible";
  return tryAgainMs === void 0 || allowed ? "limited" : "unavailable";
}

// packages/core/src/limiter/options.ts
function checkReason(where, reason) {
  if (typeof reason === "string" && reason.length <= 200) return reason;
  return invalidPolicy(where, "reason", "a string of up to 200 characters", reason);
}
var COST_OPTIONS = ["cost", "bytes", "responseBytes", "priority", "tier"];
var DECISION_OPTIONS = [...COST_OPTIONS, "fresh", "turn", "strikes"];
var NO_OPTIONS = Object.freeze(
  Object.fromEntries(DECISION_OPTIONS.map((name) => [name, void 0]))
);
function checkCostOptions(where, method, options) {
  if (options !== NO_OPTIONS && !isCostOptions(options)) knownOptions(`${where}: ${method}`, options, COST_OPTIONS);
}
function isCostOptions(options) {
  if (typeof options !== "object" || options === null || isPolluted()) return false;
  for (const field in options) {
    if (field === "cost" || field === "bytes" || field === "responseBytes") continue;
    if (field !== "priority" && field !== "tier") return false;
  }
  return !Array.isArray(options);
}
function isPolluted() {
  const all = Object.prototype;
  return "cost" in all || "bytes" in all || "responseBytes" in all || "priority" in all || "tier" in all;
}
var MAX_WEIGHT = 1e6;
function checkedStrike(policy, options) {
  const where = `${policy}: strike`;
  knownOptions(where, options, ["weight", "reason"]);
  const { weight = 1, reason = "" } = options;
  wholeNumber(where, "weight", weight, 1, MAX_WEIGHT);
  return { weight, reason: checkReason(policy, reason) };
}

// packages/core/src/util/request-fault.ts
var RequestFault = class extends SluiceError {
  fault;
  constructor(fault, message, options) {
    super(fault === "wrong cost" ? "INVALID_COST" : "INVALID_KEY", message, options);
    this.fault = fault;
  }
};

// packages/core/src/util/when-known.ts
function whenKnown(value, next) {
  return isThenable(value) ? Promise.resolve(value).then(next) : next(value);
}
function whenAllKnown(values, next) {
  if (!values.some(isThenable)) return next(values);
  const known2 = [...values];
  const awaited = values.map(async (value, i) => {
    if (isThenable(value)) known2[i] = await value;
  });
  return Promise.all(awaited).then(() => next(known2));
}
function ignorePromises(values) {
  for (const value of values) if (isThenable(value)) Promise.resolve(value).catch(() => {
  });
}

// packages/core/src/policy/key.ts
function checkedKey(where, key, ofRequest = false) {
  if (typeof key === "string" && key.length > 0 && key.length <= LONGEST_VALUE && !isHash(key)) return key;
  return storedValue(where, key, ofRequest);
}
function storedValue(where, key, ofRequest) {
  if (isKeyValue(key)) return bounded(String(key));
  const message = `${where}: key: expected a non-empty string or a number, got ${show(key)}`;
  if (!ofRequest || typeof key === "function" || isThenable(key)) throw new SluiceError("INVALID_KEY", message);
  if (!isMissing(key)) throw new RequestFault("wrong key", message);
  const remedy = ' (with the option anonymous, "by-ip" or "skip", a request may have none)';
  throw new RequestFault("missing key", message + remedy);
}
function isMissing(key) {
  return key === void 0 || key === null || key === "";
}
function isKeyValue(value) {
  return typeof value === "string" ? value !== "" : typeof value === "bigint" || Number.isFinite(value);
}
function bounded(key) {
  return key.length > LONGEST_VALUE || isHash(key) ? hashOf(key) : key;
}

// packages/core/src/policy/keyed.ts
var TAKEN = /* @__PURE__ */ new Map([
  ["ip", "byIp()"],
  ["user", "byUser((req) => \u2026)"],
  ["everyone", "everyone()"],
  ["path", "byPath()"],
  ["route", "byRoute()"],
  ["method", "byMethod()"],
  ["credentials", "byCredentials()"],
  ["header", "byHeader(name)"],
  ["cookie", "byCookie(name)"],
  ["anonymous", void 0],
  ["key", void 0],
  // An object literal with `__proto__` has no such property.
  ["__proto__", void 0]
]);
function keyed(name, key) {
  headerName("keyed", "name", name);
  if (TAKEN.has(name)) {
    const call = TAKEN.get(name);
    const remedy = call === void 0 ? "choose another name" : `use ${call} for that kind, or choose another name`;
    invalidPolicy("keyed", "name", `none of ${[...TAKEN.keys()].join(", ")}`, name, remedy);
  }
  return ofKind("keyed", "key", name, key);
}
function ofKind(where, field, kind, key, challenge) {
  if (typeof key !== "function") invalidPolicy(where, field, "a function of the request", key);
  refuseFactory(where, field, key);
  const { normalize } = key;
  return withTraits((subject, context) => key(subject, context), { kind, normalize, madeOf: [key], challenge });
}
function withTraits(key, traits) {
  return Object.freeze(Object.assign(key, traits));
}
function compose(...keys) {
  if (keys.length === 0) invalidPolicy("compose", "keys", "at least one key function", void 0);
  keys.forEach((key, i) => {
    if (typeof key !== "function") invalidPolicy("compose", `keys[${i}]`, "a key function such as byIp()", key);
    refuseFactory("compose", `keys[${i}]`, key);
  });
  const parts2 = keys.flatMap((key) => key.parts ?? [key]);
  if (parts2.length === 1) return parts2[0];
  return withTraits(
    (subject, context) => {
      const values = [];
      let isLate = false;
      try {
        for (const key of parts2) {
          const value = key(subject, context);
          isLate ||= isThenable(value);
          if (!isLate && !isKeyValue(value)) return value;
          values.push(value);
        }
      } catch (error) {
        ignorePromises(values);
        throw error;
      }
      return isLate ? Promise.all(values).then(whole) : whole(values);
    },
    { kind: parts2.map(kindOf2).join("+"), parts: parts2, madeOf: parts2 }
  );
}
knowFactories({ "keyed(name, fn)": keyed, "compose(byIp(), byPath())": compose });
function whole(values) {
  const missing = values.findIndex((value) => !isKeyValue(value));
  return missing < 0 ? joined(values.map(String)) : values[missing];
}
function kindOf2(key) {
  return key?.kind ?? "key";
}
function isSameKey(a, b) {
  if (a === b) return true;
  if (!a?.madeOf || !b?.madeOf || a.kind !== b.kind || a.madeOf.length !== b.madeOf.length) return false;
  return a.madeOf.every((part3, i) => {
    const other = b.madeOf?.[i];
    return part3 === other || typeof part3 === "function" && typeof other === "function" && isSameKey(part3, other);
  });
}
function isAlike(a, b) {
  if (isSameKey(a, b)) return true;
  if (a?.kind === "ip" && b?.kind === "ip") return true;
  if (!a?.parts || a.parts.length !== b?.parts?.length) return false;
  return a.parts.every((part3, i) => isAlike(part3, b.parts?.[i]));
}
function bitsOf(key) {
  return key?.parts ? key.parts.reduce((sum, part3) => sum + bitsOf(part3), 0) : key?.bits ?? 0;
}

// packages/core/src/util/credentials.ts
var MAX_PARTS = 64;
var LONGEST_BASIC = 4096;
function secretValue(kind, raw) {
  if (kind === "credentials") return sha256Of(credentialsIn(raw) ?? "");
  if (isHeaderOfCredentials(kind)) return sha256Of(tokenIn(raw));
  return kind.startsWith("header:") || kind.startsWith("cookie:") ? sha256Of(raw) : void 0;
}
function isHeaderOfCredentials(kind) {
  return kind === "header:authorization" || kind === "header:proxy-authorization";
}
function tokenIn(value) {
  const [first2 = "", ...rest] = value.trim().split(/\s+/, MAX_PARTS + 1);
  const [token] = rest;
  if (token === void 0) return first2;
  const scheme = first2.toLowerCase();
  if (scheme === "basic") {
    if (rest.length > 1) throw wrong("base64 in one part");
    return basicBytes(token).toString("base64");
  }
  const hasParameters = scheme !== "bearer" && /=[^=]/.test(token);
  if (!hasParameters) return token;
  if (rest.length === MAX_PARTS) throw wrong(`at most ${MAX_PARTS - 1} parameters`);
  return rest.join(" ");
}
function credentialsIn(value, schemes) {
  const [, given = "", token = ""] = /^(\S+)(?:[ \t]+(.*))?$/.exec(value.trim()) ?? [];
  const scheme = given.toLowerCase();
  if (schemes && !schemes.includes(scheme)) return void 0;
  if (!/^[!#-+\--~]+$/.test(token)) throw wrong("a scheme and a token in one part");
  if (scheme !== "basic") return token.replace(SIGNED_TOKEN, (_, signed, by) => signed + base64url(by));
  const pair = basicBytes(token).toString("latin1");
  const end = pair.indexOf(":");
  if (end < 0) throw wrong('a user-id and a password, separated by ":"');
  return end === 0 ? void 0 : `basic ${pair.slice(0, end)}`;
}
var SIGNED_TOKEN = /^(eyJ[^.]*\.[^.]*\.)([^.]+)$/;
var base64url = (text) => Buffer.from(text, "base64").toString("base64url");
function basicBytes(token) {
  if (token.length > LONGEST_BASIC) throw wrong(`at most ${LONGEST_BASIC} characters of base64`);
  return Buffer.from(token, "base64");
}
function wrong(expected) {
  return new RequestFault("wrong key", `credentials: expected ${expected}`);
}

// packages/core/src/util/ip-address.ts
var MAPPED = [0, 0, 65535];
var NAT64 = [6619035, 0, 0];
function ipAddress(text) {
  return plainAddress(text) ?? plainAddress(bare(text));
}
function plainAddress(text) {
  const v4 = ipv4(text, 0);
  if (v4 >= 0) return oneAddress([v4]);
  const words = ipv6Words(text);
  return words && oneAddress(embedsIPv4(words) ? words.slice(3) : words);
}
function oneAddress(words) {
  return { isIPv4: words.length === 1, first: words, last: words };
}
function embedsIPv4(words) {
  return isMapped(words) || NAT64.every((word2, i) => word2 === words[i]);
}
function isMapped(words) {
  return MAPPED.every((word2, i) => word2 === words[i]);
}
function addressText(words) {
  const [first2 = 0] = words;
  if (words.length === 1) return `${first2 >>> 24}.${first2 >>> 16 & 255}.${first2 >>> 8 & 255}.${first2 & 255}`;
  const part3 = (i) => words[i >> 1] >>> (i % 2 === 0 ? 16 : 0) & 65535;
  let [start, length] = [-1, 1];
  for (let i = 0; i < 8; i++) {
    let end = i;
    while (end < 8 && part3(end) === 0) end++;
    if (end - i > length) [start, length] = [i, end - i];
  }
  let text = "";
  for (let i = 0; i < 8; i++) {
    if (i === start) {
      text += "::";
      i += length - 1;
    } else text += (i === 0 || i === start + length ? "" : ":") + part3(i).toString(16);
  }
  return text;
}
function bare(given) {
  const [, inBrackets] = /^\[([^\]]*)\](?::\d+)?$/.exec(given) ?? [];
  const [, beforePort] = /^([\d.]+):\d+$/.exec(given) ?? [];
  const address = inBrackets ?? beforePort ?? given;
  const zone = address.indexOf("%");
  return zone < 0 ? address : address.slice(0, zone);
}
function ipv4(text, at) {
  const end = text.length;
  if (end - at < 7 || end - at > 15) return -1;
  let word2 = 0;
  let part3 = 0;
  let digits = 0;
  let dots = 0;
  for (let i = at; i < end; i++) {
    const code = text.charCodeAt(i);
    if (code === DOT) {
      if (digits === 0 || ++dots > 3) return -1;
      word2 = word2 * 256 + part3;
      part3 = 0;
      digits = 0;
      continue;
    }
    const digit = code - ZERO;
    if (digit < 0 || digit > 9 || digits > 0 && part3 === 0) return -1;
    part3 = part3 * 10 + digit;
    digits++;
    if (part3 > 255) return -1;
  }
  return dots === 3 && digits > 0 ? word2 * 256 + part3 : -1;
}
var DOT = 46;
var ZERO = 48;
var COLON = 58;
var parts = new Uint16Array(8);
function ipv6Words(text) {
  const end = text.length;
  if (end < 2 || end > 45) return void 0;
  let count2 = 0;
  let gap = -1;
  let i = 0;
  if (text.charCodeAt(0) === COLON) {
    if (text.charCodeAt(1) !== COLON) return void 0;
    gap = 0;
    i = 2;
  }
  while (i < end) {
    if (count2 === 8) return void 0;
    const start = i;
    let part3 = 0;
    let digit = 0;
    while (i < end) {
      digit = hexDigit(text.charCodeAt(i));
      if (digit < 0) break;
      part3 = part3 * 16 + digit;
      i++;
    }
    if (i < end && text.charCodeAt(i) === DOT) {
      const word2 = ipv4(text, start);
      if (word2 < 0 || count2 > 6) return void 0;
      parts[count2++] = word2 >>> 16;
      parts[count2++] = word2 & 65535;
      i = end;
      break;
    }
    if (i === start || i - start > 4) return void 0;
    parts[count2++] = part3;
    if (i === end) break;
    if (text.charCodeAt(i) !== COLON) return void 0;
    i++;
    if (i < end && text.charCodeAt(i) === COLON) {
      if (gap >= 0) return void 0;
      gap = count2;
      i++;
    } else if (i === end) return void 0;
  }
  if (gap < 0 ? count2 !== 8 : count2 > 7) return void 0;
  if (gap >= 0) {
    const moved = count2 - gap;
    for (let n = 1; n <= moved; n++) parts[8 - n] = parts[count2 - n];
    for (let n = gap; n < 8 - moved; n++) parts[n] = 0;
  }
  return [word(0), word(2), word(4), word(6)];
}
function word(at) {
  return (parts[at] << 16 | parts[at + 1]) >>> 0;
}
var HEX = Int8Array.from({ length: 128 }, (_, code) => {
  const digit = Number.parseInt(String.fromCharCode(code), 16);
  return Number.isNaN(digit) ? -1 : digit;
});
function hexDigit(code) {
  return code < 128 ? HEX[code] : -1;
}

// packages/core/src/util/ip-range.ts
var ALL = 4294967295;
var RANGE_FORMS = 'an address, or a range such as "192.0.2.0/24" or "192.0.2.0-192.0.2.9"';
function ipRange(text, ipv6Prefix = 128) {
  const slash = text.indexOf("/");
  if (slash >= 0) return network(text.slice(0, slash), text.slice(slash + 1));
  const dash = text.indexOf("-");
  if (dash >= 0) return between(text.slice(0, dash).trimEnd(), text.slice(dash + 1).trimStart());
  const address = plainAddress(text);
  return !address || address.isIPv4 || ipv6Prefix === 128 ? address : masked(address.first, ipv6Prefix);
}
function network(base, bits) {
  if (!/^(?:0|[1-9]\d{0,2})$/.test(bits)) return void 0;
  const prefix = Number(bits);
  const words = ipv6Words(base);
  if (words) {
    if (prefix > 128) return void 0;
    return prefix >= 96 && embedsIPv4(words) ? masked(words.slice(3), prefix - 96) : masked(words, prefix);
  }
  const address = plainAddress(base);
  return address && prefix <= 32 ? masked(address.first, prefix) : void 0;
}
function between(from, to) {
  const start = plainAddress(from);
  const end = plainAddress(to);
  if (!start || !end || start.isIPv4 !== end.isIPv4 || isAfter(start.first, end.first)) return void 0;
  return { ...start, last: end.last };
}
function isAfter(first2, last) {
  for (let i = 0; i < first2.length; i++) if (first2[i] !== last[i]) return first2[i] > last[i];
  return false;
}
function masked(words, prefix) {
  const masks = words.map((_, i) => maskOf(Math.min(32, Math.max(0, prefix - 32 * i))));
  return {
    isIPv4: words.length === 1,
    first: words.map((word2, i) => (word2 & masks[i]) >>> 0),
    last: words.map((word2, i) => (word2 | ~masks[i]) >>> 0)
  };
}
function maskOf(bits) {
  return bits === 0 ? 0 : ALL << 32 - bits >>> 0;
}
function networkText(text) {
  const range = text.includes("/") ? ipRange(text) : void 0;
  return range && rangeText(range);
}
function rangeText({ isIPv4, first: first2, last }) {
  const prefix = commonBits(first2, last);
  const network2 = masked(first2, prefix);
  if (isAfter(first2, network2.first) || isAfter(network2.last, last)) return `${addressText(first2)}-${addressText(last)}`;
  return isIPv4 && prefix === 32 ? addressText(first2) : `${addressText(first2)}/${prefix}`;
}
function sizeOfRange({ isIPv4, first: first2, last }) {
  const between2 = last.reduce((sum, word2, i) => (sum << 32n) + BigInt(word2 - first2[i]), 0n);
  return isIPv4 ? Number(between2) + 1 : between2 + 1n;
}
function commonBits(one, other) {
  for (let i = 0; i < one.length; i++) {
    const different = one[i] ^ other[i];
    if (different !== 0) return 32 * i + Math.clz32(different);
  }
  return 32 * one.length;
}

// packages/core/src/policy/priority.ts
function priorityFor(where, option, tier) {
  if (option === void 0) return void 0;
  if (typeof option === "function") {
    return (subject, context) => whenKnown(option(subject, context), (priority2) => checkPriority(where, priority2));
  }
  if (typeof option !== "object" || option === null || tier === void 0) {
    invalidPolicy(where, "priority", "a function of the request, or beside tiers a number by tier", option);
  }
  const priority = Object.hasOwn(option, tier) ? checkPriority(where, option[tier], `[${tier}]`) : 0;
  return () => priority;
}
function ageEveryMsOf(where, ageEvery = "2s") {
  return Math.min(waitOrNever(where, "ageEvery", ageEvery), MAX_DURATION_MS);
}
function checkPriority(where, priority, of = "") {
  if (typeof priority === "number" && Number.isFinite(priority)) return priority;
  return invalidPolicy(where, `priority${of}`, "a finite number", priority);
}

// packages/core/src/limiter/near-limit.ts
function listen(listeners, where, name, listener, options = {}) {
  knownOptions(`${where}: on`, options, ["at"]);
  if (name !== "near-limit") {
    if (options.at === void 0) return listeners.on(name, listener);
    throw new SluiceError("INVALID_POLICY", `${where}: on: at: expected none but for near-limit`);
  }
  const { at = 0.8 } = options;
  if (typeof at !== "number" || !(at > 0 && at <= 1))
    invalidPolicy(`${where}: on`, "at", "a number above 0, up to 1", at);
  if (typeof listener !== "function") return listeners.on(name, listener);
  return listeners.on(name, ({ before, ...use }) => {
    if (before < at && use.used >= at) return listener({ ...use, at });
  });
}

// packages/core/src/blocks/block-events.ts
function emitBlock(listeners, place, forMs, reason) {
  if (!listeners.hasListeners("block")) return;
  listeners.send("block", { ...shown(place), forMs: isForEver(forMs) ? Number.POSITIVE_INFINITY : forMs, reason });
}
function emitUnblock(listeners, place) {
  if (listeners.hasListeners("unblock")) listeners.send("unblock", shown(place));
}
function emitBanEvicted(listeners, place, rung, remainingMs) {
  if (listeners.hasListeners("ban-evicted")) listeners.send("ban-evicted", { ...shown(place), rung, remainingMs });
}
function shown({ policy, identity }) {
  return { policy: policy === EVERY_POLICY ? void 0 : policy, identity: identityIn(identity) };
}

// packages/core/src/lists/options.ts
var LIST_OPTIONS = ["allow", "deny"];

// packages/core/src/util/range-tree.ts
var LENGTH = 0;
var BRANCH = 1;
var RANGES = 3;
var WORDS = 4;
var NEXT = 0;
var FIRST = 1;
var RangeTree = class {
  /** Words of an address. */
  #width;
  #nodes;
  #ranges;
  /** `data`: of a tree that is not changed from now on. */
  constructor(width, data) {
    this.#width = width;
    this.#nodes = new Rows(WORDS + width, data?.nodes);
    this.#ranges = new Rows(FIRST + 2 * width, data?.ranges);
  }
  /** The number of a range, which is added where it is not there. Numbers of deleted ranges are used again. */
  add({ first: first2, last }) {
    const node = this.#nodeOf(first2, commonBits(first2, last));
    const before = this.#nodes.at(node, RANGES);
    const known2 = this.#numberIn(before, first2, last);
    if (known2 > 0) return known2;
    const range = this.#ranges.add();
    this.#ranges.set(range, NEXT, before);
    for (let i = 0; i < this.#width; i++) {
      this.#ranges.set(range, FIRST + i, first2[i]);
      this.#ranges.set(range, FIRST + this.#width + i, last[i]);
    }
    this.#nodes.set(node, RANGES, range);
    return range;
  }
  /** The number of a range; 0 where it is not there. */
  get({ first: first2, last }) {
    const node = this.#pathTo(first2, commonBits(first2, last)).at(-1);
    return node === void 0 ? 0 : this.#numberIn(this.#nodes.at(node, RANGES), first2, last);
  }
  /** The number that a range had; 0 where it was not there. */
  delete({ first: first2, last }) {
    const path = this.#pathTo(first2, commonBits(first2, last));
    const node = path.at(-1);
    if (node === void 0) return 0;
    let before = 0;
    let range = this.#nodes.at(node, RANGES);
    while (range > 0 && !this.#is(range, first2, last)) {
      before = range;
      range = this.#ranges.at(range, NEXT);
    }
    if (range === 0) return 0;
    const next = this.#ranges.at(range, NEXT);
    if (before > 0) this.#ranges.set(before, NEXT, next);
    else this.#nodes.set(node, RANGES, next);
    this.#ranges.delete(range);
    this.#prune(path);
    return range;
  }
  /**
   * The number of the smallest range that has all addresses of another, and whose value `holds`. 0 where there is none.
   * `values`: by number. `holds` is called in no order, with the values of ranges that are smaller than the best so far.
   */
  find({ first: first2, last }, values, holds) {
    const bits = 32 * this.#width;
    let found = 0;
    let node = 0;
    for (; ; ) {
      for (let range = this.#nodes.at(node, RANGES); range > 0; range = this.#ranges.at(range, NEXT)) {
        const isFirst = found === 0 || this.#isSmaller(range, found);
        if (isFirst && this.#has(range, first2, last) && holds(values[range])) found = range;
      }
      const length = this.#nodes.at(node, LENGTH);
      if (length === bits) return found;
      node = this.#nodes.at(node, BRANCH + bitOf(first2, length));
      if (node === 0) return found;
    }
  }
  /** How many addresses a range has. Numbers where they are exact. */
  sizeOf(range) {
    if (this.#width === 1) return this.#lastOf(range, 0) - this.#firstOf(range, 0) + 1;
    let size = 0n;
    for (let i = 0; i < this.#width; i++)
      size = (size << 32n) + BigInt(this.#lastOf(range, i) - this.#firstOf(range, i));
    return size + 1n;
  }
  /** All of it, without room for more. */
  data() {
    return { nodes: this.#nodes.used(), ranges: this.#ranges.used() };
  }
  #firstOf(range, i) {
    return this.#ranges.at(range, FIRST + i);
  }
  #lastOf(range, i) {
    return this.#ranges.at(range, FIRST + this.#width + i);
  }
  /** The node for some leading bits, which is made where there is none. */
  #nodeOf(words, length) {
    const nodes = this.#nodes;
    let node = 0;
    while (nodes.at(node, LENGTH) < length) {
      const branch = BRANCH + bitOf(words, nodes.at(node, LENGTH));
      const child = nodes.at(node, branch);
      if (child === 0) {
        const leaf = this.#newNode(words, length);
        nodes.set(node, branch, leaf);
        return leaf;
      }
      const shared = Math.min(this.#bitsInCommon(child, words), length);
      if (shared < nodes.at(child, LENGTH)) {
        const fork = this.#newNode(words, shared);
        nodes.set(fork, BRANCH + bitIn(nodes.at(child, WORDS + (shared >>> 5)), shared), child);
        nodes.set(node, branch, fork);
        node = fork;
      } else node = child;
    }
    return node;
  }
  #newNode(words, length) {
    const node = this.#nodes.add();
    this.#nodes.set(node, LENGTH, length);
    for (let i = 0; i < this.#width; i++) this.#nodes.set(node, WORDS + i, words[i]);
    return node;
  }
  /** How many leading bits a node shares with an address, of those that its ranges share. */
  #bitsInCommon(node, words) {
    const length = this.#nodes.at(node, LENGTH);
    for (let i = 0; i < this.#width; i++) {
      const different = this.#nodes.at(node, WORDS + i) ^ words[i];
      if (different !== 0) return Math.min(length, 32 * i + Math.clz32(different));
    }
    return length;
  }
  /** The nodes from the root to that for some leading bits; none where there is no such node. */
  #pathTo(words, length) {
    const path = [0];
    for (let node = 0; this.#nodes.at(node, LENGTH) < length; path.push(node)) {
      node = this.#nodes.at(node, BRANCH + bitOf(words, this.#nodes.at(node, LENGTH)));
      if (node === 0) return [];
    }
    return path;
  }
  /** Removes nodes that are not needed. */
  #prune(path) {
    for (let node = path.pop(); node > 0; node = path.pop()) {
      const [zero, one] = [this.#nodes.at(node, BRANCH), this.#nodes.at(node, BRANCH + 1)];
      if (this.#nodes.at(node, RANGES) > 0 || zero > 0 && one > 0) return;
      const parent = path.at(-1);
      const branch = this.#nodes.at(parent, BRANCH) === node ? BRANCH : BRANCH + 1;
      this.#nodes.set(parent, branch, zero + one);
      this.#nodes.delete(node);
      if (zero + one > 0) return;
    }
  }
  #numberIn(firstRange, first2, last) {
    let range = firstRange;
    while (range > 0 && !this.#is(range, first2, last)) range = this.#ranges.at(range, NEXT);
    return range;
  }
  #is(range, first2, last) {
    return this.#compare(range, FIRST, first2) === 0 && this.#compare(range, FIRST + this.#width, last) === 0;
  }
  #has(range, first2, last) {
    return this.#compare(range, FIRST, first2) <= 0 && this.#compare(range, FIRST + this.#width, last) >= 0;
  }
  /** Below 0 where the address in a column of a range comes before another one, above 0 where it comes after it. */
  #compare(range, column, words) {
    for (let i = 0; i < this.#width; i++) {
      const difference = this.#ranges.at(range, column + i) - words[i];
      if (difference !== 0) return difference;
    }
    return 0;
  }
  /** By the words of their sizes, of which the last may borrow from those before it. */
  #isSmaller(range, other) {
    let difference = 0;
    for (let i = 0; i < this.#width; i++) {
      const [own, others] = [
        this.#lastOf(range, i) - this.#firstOf(range, i),
        this.#lastOf(other, i) - this.#firstOf(other, i)
      ];
      difference = difference * 2 ** 32 + own - others;
    }
    return difference < 0;
  }
};
function bitOf(words, bit) {
  return bitIn(words[bit >>> 5], bit);
}
function bitIn(word2, bit) {
  return word2 >>> 31 - (bit & 31) & 1;
}
var Rows = class {
  #columns;
  #numbers;
  #count = 1;
  /** The first of the deleted rows, which name the next one in their first column; 0 for none. */
  #free = 0;
  constructor(columns, numbers = new Uint32Array(8 * columns)) {
    this.#columns = columns;
    this.#numbers = numbers;
  }
  at(row, column) {
    return this.#numbers[row * this.#columns + column];
  }
  set(row, column, number) {
    this.#numbers[row * this.#columns + column] = number;
  }
  add() {
    if (this.#free > 0) {
      const row = this.#free;
      this.#free = this.at(row, 0);
      return row;
    }
    if (this.#count * this.#columns === this.#numbers.length) {
      const more = new Uint32Array(2 * this.#numbers.length);
      more.set(this.#numbers);
      this.#numbers = more;
    }
    return this.#count++;
  }
  delete(row) {
    const start = row * this.#columns;
    this.#numbers.fill(0, start, start + this.#columns);
    this.set(row, 0, this.#free);
    this.#free = row;
  }
  used() {
    return this.#numbers.slice(0, this.#count * this.#columns);
  }
};

// packages/core/src/util/range-map.ts
var RangeMap = class {
  #v4 = { tree: new RangeTree(1), values: [void 0] };
  #v6 = { tree: new RangeTree(4), values: [void 0] };
  #size = 0;
  get size() {
    return this.#size;
  }
  get(range) {
    const { tree, values } = range.isIPv4 ? this.#v4 : this.#v6;
    return values[tree.get(range)];
  }
  set(range, value) {
    const { tree, values } = range.isIPv4 ? this.#v4 : this.#v6;
    const number = tree.add(range);
    if (values[number] === void 0) this.#size++;
    values[number] = value;
  }
  delete(range) {
    const { tree, values } = range.isIPv4 ? this.#v4 : this.#v6;
    const number = tree.delete(range);
    if (number === 0) return;
    this.#size--;
    values[number] = void 0;
  }
  /**
   * The value of the smallest range that has all addresses of another, and whose value holds. `holds` is called in no order,
   * with the values of ranges that are smaller than the best so far.
   */
  find(range, holds) {
    if (this.#size === 0) return void 0;
    const { tree, values } = range.isIPv4 ? this.#v4 : this.#v6;
    return values[tree.find(range, values, holds)];
  }
};

// packages/core/src/blocks/blocked-ranges.ts
var START = startOf2("ip");
var BlockedRanges = class {
  #byRange = new RangeMap();
  get size() {
    return this.#byRange.size;
  }
  /** Does nothing if the identity is not a network. */
  set(policy, identity, value) {
    const range = networkIn(identity);
    if (range) this.#byRange.set(range, [...this.#others(range, policy), { policy, value }]);
  }
  delete(policy, identity) {
    const range = networkIn(identity);
    if (!range) return;
    const others = this.#others(range, policy);
    if (others.length > 0) this.#byRange.set(range, others);
    else this.#byRange.delete(range);
  }
  /** The values of these policies' networks that contain an identity. */
  find(policies, identity) {
    const found = [];
    const range = this.size > 0 ? rangeIn(identity) : void 0;
    if (!range) return found;
    this.#byRange.find(range, (all) => {
      for (const policy of policies) for (const each of all) if (each.policy === policy) found.push(each.value);
      return false;
    });
    return found;
  }
  #others(range, policy) {
    return this.#byRange.get(range)?.filter((each) => each.policy !== policy) ?? [];
  }
};
function networkIn(identity) {
  return identity.includes("/") ? rangeIn(identity) : void 0;
}
function rangeIn(identity) {
  return identity.startsWith(START) ? ipRange(identity.slice(START.length)) : void 0;
}

// packages/core/src/blocks/named-lists.ts
var FOREVER = 2 ** 48 - 1;
var MAX_LISTED = 1e5;
var SWEPT_PER_ENTRY = 2;
var NamedLists = class {
  #byName = /* @__PURE__ */ new Map();
  #now;
  #size = 0;
  /** Position of the walk that removes ended entries. */
  #walk = this[Symbol.iterator]();
  constructor(now) {
    this.#now = now;
  }
  get size() {
    return this.#size;
  }
  /** The list of this name, which may be empty. */
  of(name) {
    let list = this.#byName.get(name);
    if (!list) {
      list = new NamedList(this.#now);
      this.#byName.set(name, list);
    }
    return list;
  }
  get(name, identity) {
    return this.#byName.get(name)?.get(identity);
  }
  set(entry) {
    if (this.of(entry.list).set(entry)) this.#size++;
    this.#sweep(SWEPT_PER_ENTRY);
  }
  delete(name, identity) {
    if (this.#byName.get(name)?.delete(identity)) this.#size--;
  }
  *[Symbol.iterator]() {
    for (const list of this.#byName.values()) yield* list;
  }
  /** Walks in a circle, a few entries at a time. */
  #sweep(max) {
    for (let n = 0; n < max; n++) {
      const { value, done } = this.#walk.next();
      if (done) {
        this.#walk = this[Symbol.iterator]();
        return;
      }
      if (value.until <= this.#now()) this.delete(value.list, value.identity);
    }
  }
};
var NamedList = class {
  /** Increases with every change. */
  version = 1;
  kinds = [];
  /** Entries with the number of their last change, in the order of these numbers. */
  #entries = /* @__PURE__ */ new Map();
  #ranges = new RangeMap();
  #counts = /* @__PURE__ */ new Map();
  #holds;
  constructor(now) {
    this.#holds = ({ entry }) => entry.until > now();
  }
  get size() {
    return this.#entries.size;
  }
  get(identity) {
    return this.#entries.get(identity)?.[1];
  }
  *[Symbol.iterator]() {
    for (const [, entry] of this.#entries.values()) yield entry;
  }
  /** Entries that changed after a number, each with the number of its change. */
  *from(after) {
    for (const numbered of this.#entries.values()) if (numbered[0] > after) yield numbered;
  }
  match(identity) {
    const found = this.#find(identity);
    if (!found || !this.#holds(found)) return void 0;
    const { reason, until } = found.entry;
    return { reason, expiresAt: until === FOREVER ? void 0 : until, size: found.size };
  }
  #find({ kind, value, address }) {
    if (kind !== "ip") {
      const entry = this.get(startOf2(kind) + value);
      return entry && { entry, size: 1 };
    }
    const known2 = this.#ranges.size > 0 ? address ?? ipAddress(value) : void 0;
    return known2 && this.#ranges.find(known2, this.#holds);
  }
  /** Returns whether the entry is new. A replaced entry moves to the end. */
  set(entry) {
    const isNew = !this.#entries.delete(entry.identity);
    this.version++;
    this.#entries.set(entry.identity, [this.version, entry]);
    const range = rangeIn(entry.identity);
    if (range) this.#ranges.set(range, { entry, size: sizeOfRange(range) });
    if (isNew) this.#count(entry.identity, 1);
    return isNew;
  }
  /** Returns whether the entry existed. */
  delete(identity) {
    if (!this.#entries.delete(identity)) return false;
    const range = rangeIn(identity);
    if (range) this.#ranges.delete(range);
    this.version++;
    this.#count(identity, -1);
    return true;
  }
  #count(identity, more) {
    const { kind } = textValue(identity);
    const count2 = (this.#counts.get(kind) ?? 0) + more;
    if (count2 > 0) this.#counts.set(kind, count2);
    else this.#counts.delete(kind);
    if (this.#counts.size !== this.kinds.length) this.kinds = [...this.#counts.keys()];
  }
};

// packages/core/src/blocks/given-blocks.ts
function placeOf(where, identity, { policy }) {
  return { policy: checkedPolicy(where, policy), identity: identityText(where, identity) };
}
function checkedScope(where, scope = {}) {
  knownOptions(where, scope, ["policy"]);
  return scope;
}
function checkedAdd(where, options) {
  knownOptions(where, options, ["policy", "for", "reason"]);
  return { forMs: spanOrForEver(where, "for", options.for), reason: checkedReason(where, options.reason) };
}
function checkedQuery(query = {}) {
  knownOptions("blocks.list", query, ["policy", "kind", "prefix", "cursor", "max"]);
  const { policy, ...rest } = query;
  if (policy !== void 0) checkedPolicy("blocks.list", policy);
  const { matches, ...page } = checkedPage("blocks.list", rest);
  const isOf = (entry) => policy === void 0 || entry.policy === void 0 || entry.policy === policy;
  return { ...page, matches: (entry) => matches(entry) && isOf(entry) };
}
function checkedPage(where, query = {}) {
  knownOptions(where, query, ["kind", "prefix", "cursor", "max"]);
  const { kind, prefix = "", cursor, max = 100 } = query;
  if (kind !== void 0 && !isKind(kind)) invalidPolicy(where, "kind", 'a kind such as "ip"', kind);
  if (typeof prefix !== "string") invalidPolicy(where, "prefix", "a string", prefix);
  if (cursor !== void 0 && typeof cursor !== "string")
    invalidPolicy(where, "cursor", "the cursor of the page before", cursor);
  wholeNumber(where, "max", max, 1, MAX_PAGE);
  return {
    where,
    cursor,
    max,
    matches: (entry) => (kind === void 0 || entry.kind === kind) && entry.value.startsWith(prefix)
  };
}
var MAX_PAGE = 1e3;
var LONGEST_REASON = 200;
function checkedEntry(index, entry) {
  const where = `blocks.import: [${index}]`;
  knownOptions(where, entry, ["policy", "kind", "value", "reason", "since", "until", "times", "ban"]);
  const { policy, kind, value, reason, since, until, times, ban } = entry;
  if (policy !== void 0) checkedPolicy(where, policy);
  if (!isKind(kind)) invalidPolicy(where, "kind", 'a kind such as "ip"', kind);
  if (typeof value !== "string" || value === "" || value.length > LONGEST_VALUE) {
    invalidPolicy(where, "value", `a string of 1 to ${LONGEST_VALUE} characters`, value);
  }
  checkedReason(where, reason);
  wholeNumber(where, "since", since, 0);
  wholeNumber(where, "until", until, 0, FOREVER);
  wholeNumber(where, "times", times, 1);
  if (ban !== void 0) {
    knownOptions(`${where}: ban`, ban, ["rung", "strikes", "forgetAfterMs"]);
    const { rung, strikes, forgetAfterMs } = ban;
    wholeNumber(`${where}: ban`, "rung", rung, 1, MAX_RUNGS);
    wholeNumber(`${where}: ban`, "strikes", strikes, 1);
    if (forgetAfterMs !== void 0) wholeNumber(`${where}: ban`, "forgetAfterMs", forgetAfterMs, 1, FOREVER);
  }
  return entry;
}
var CLIENT_BITS = 64;
function checkedPolicy(where, policy = EVERY_POLICY) {
  if (typeof policy === "string" && policy !== "") return policy;
  return invalidPolicy(where, "policy", "the name of a policy", policy);
}
function checkedReason(where, reason = "") {
  if (typeof reason === "string" && reason.length <= LONGEST_REASON) return reason;
  return invalidPolicy(where, "reason", `a string of up to ${LONGEST_REASON} characters`, reason);
}
function identityText(where, identity, addressOf = clientOf) {
  const [[kind, raw] = ["", void 0], ...others] = Object.entries(identity ?? {});
  if (others.length > 0 || !isKind(kind)) {
    return invalidKey(where, "an identity such as { ip: '192.0.2.7' }", identity);
  }
  const kinds = kind.split("+");
  const values = kinds.length === 1 ? [raw] : raw;
  if (!Array.isArray(values) || values.length !== kinds.length) {
    return invalidKey(`${where}: ${kind}`, `an array of ${kinds.length} values`, raw);
  }
  const counted = kinds.map((each, i) => countedValue(where, each, values[i], addressOf));
  return startOf2(kind) + bounded2(kinds.length === 1 ? counted[0] : joined(counted));
}
function countedValue(where, kind, raw, addressOf) {
  const text = typeof raw === "string" || typeof raw === "bigint" || Number.isFinite(raw) ? String(raw) : "";
  if (text === "") return invalidKey(`${where}: ${kind}`, "a non-empty string or a number", raw);
  if (kind === "ip") return addressOf(where, text);
  return secretValue(kind, text) ?? text;
}
function clientOf(where, text) {
  const given = text.trim();
  const range = given.includes("-") ? void 0 : ipRange(bare(given), CLIENT_BITS);
  return range ? rangeText(range) : invalidKey(`${where}: ip`, "an address or a network", text);
}
function bounded2(value) {
  return value.length > LONGEST_VALUE || isHash(value) ? hashOf(value) : value;
}
async function* entriesOf(blocks, max) {
  let cursor;
  do {
    const page = await blocks.list({ max, ...cursor !== void 0 && { cursor } });
    yield* page.entries;
    cursor = page.cursor;
  } while (cursor !== void 0);
}

// packages/core/src/blocks/given-list-entries.ts
var NAME = /^[A-Za-z0-9_.:-]{1,64}$/;
function checkedListName(where, name) {
  if (typeof name === "string" && NAME.test(name)) return name;
  return invalidPolicy(where, "name", '1 to 64 letters, digits, and any of "_.:-"', name);
}
function listedText(where, identity) {
  const text = identityText(where, identity, rangeOf);
  if (!textValue(text).kind.includes("+")) return text;
  return invalidKey(where, "an identity of a kind that is not composed", identity);
}
function rangeOf(where, text) {
  const range = ipRange(text.trim(), CLIENT_BITS);
  return range ? rangeText(range) : invalidKey(`${where}: ip`, RANGE_FORMS, text);
}
function checkedDetails(where, options = {}, now) {
  knownOptions(where, options, ["reason", "expiresAt"]);
  const { expiresAt } = options;
  const reason = checkedReason(where, options.reason);
  if (expiresAt === void 0) return { reason, until: FOREVER };
  const until = wholeNumber(where, "expiresAt", expiresAt instanceof Date ? expiresAt.getTime() : expiresAt, 0);
  if (until <= now || until > FOREVER) invalidPolicy(where, "expiresAt", `an instant in the future`, expiresAt);
  return { reason, until };
}
function checkedNamedEntry(entry) {
  const where = "list";
  knownOptions(where, entry, ["list", "identity", "reason", "since", "until"]);
  const { list, identity, reason, since, until } = entry;
  checkedListName(where, list);
  if (typeof identity !== "string" || valueStart(identity) === 0)
    invalidPolicy(where, "identity", 'an identity such as "ip=192.0.2.7"', identity);
  checkedReason(where, reason);
  wholeNumber(where, "since", since, 0);
  wholeNumber(where, "until", until, 0, FOREVER);
  return entry;
}
function checkRoom(where, size) {
  if (size < MAX_LISTED) return;
  throw new SluiceError(
    "STORE_FULL",
    `${where}: the lists of this store have ${MAX_LISTED} entries: keep long ones in files`
  );
}
function listEntry({ identity, reason, since, until }) {
  return { ...textValue(identity), reason, since, ...until !== FOREVER && { expiresAt: until } };
}

// packages/core/src/blocks/given-lists.ts
function storeLists(where, { allow, deny }) {
  if (allow === void 0 && deny === void 0) return void 0;
  return { allow: checkedLists(where, "allow", allow), deny: checkedLists(where, "deny", deny) };
}
function checkedLists(where, field, given) {
  if (given === void 0) return [];
  const items = Array.isArray(given) ? given : [given];
  items.forEach((item, i) => {
    const name = Array.isArray(given) ? `${field}[${i}]` : field;
    if (typeof item !== "function" && !isList(item)) {
      invalidPolicy(where, name, "a list such as ipRanges([\u2026]), or a function", item);
    }
  });
  return Object.freeze([...items]);
}
function isList(item) {
  return typeof item === "object" && item !== null && typeof item.match === "function";
}

// packages/core/src/blocks/kept-list.ts
var KeptList = class {
  name;
  #keeper;
  #list;
  constructor(name, keeper) {
    this.name = name;
    this.#keeper = keeper;
    this.#list = keeper.named.of(name);
  }
  get kinds() {
    return this.#list.kinds;
  }
  get version() {
    return this.#list.version;
  }
  get size() {
    return this.#list.size;
  }
  get pending() {
    return this.#keeper.pending;
  }
  match(identity) {
    return this.#list.match(identity);
  }
  forStore() {
    return this;
  }
  ready() {
    return this.#keeper.loaded();
  }
  async close() {
  }
  async add(given, options) {
    const identity = listedText("list.add", given);
    const since = this.#keeper.now();
    const details = checkedDetails("list.add", options, since);
    if (!this.#list.get(identity)) checkRoom("list.add", this.#keeper.named.size);
    await this.#keeper.add(this.name, { identity, since, ...details });
  }
  async remove(identity) {
    await this.#keeper.remove(this.name, [listedText("list.remove", identity)]);
  }
  async removeAll() {
    let cursor;
    do {
      const page = await this.#keeper.page(this.name, { where: "", cursor, max: 100, matches: () => true });
      await this.#keeper.remove(
        this.name,
        page.entries.map(({ identity }) => identity)
      );
      cursor = page.cursor;
    } while (cursor !== void 0);
  }
  async get(identity) {
    const row = await this.#keeper.get(this.name, listedText("list.get", identity));
    return row && row.until > this.#keeper.now() ? listEntry(row) : void 0;
  }
  async list(query) {
    const { matches, ...page } = checkedPage("list.list", query);
    const found = await this.#keeper.page(this.name, { ...page, matches: (row) => matches(listEntry(row)) });
    return { ...found, entries: found.entries.map(listEntry) };
  }
};

// packages/core/src/util/heap.ts
var Heap = class {
  #items = [];
  #goesBefore;
  constructor(goesBefore2) {
    this.#goesBefore = goesBefore2;
  }
  get size() {
    return this.#items.length;
  }
  get first() {
    return this.#items[0];
  }
  add(item) {
    item.place = this.#items.push(item) - 1;
    this.#rise(item);
  }
  /** `item` is in the heap. */
  delete(item) {
    const last = this.#items.pop();
    if (last === item) return;
    this.#put(last, item.place);
    this.#rise(last);
    this.sink(last);
  }
  #rise(item) {
    while (item.place > 0) {
      const at = item.place;
      const above = this.#items[at - 1 >> 1];
      if (!this.#goesBefore(item, above)) return;
      this.#put(item, above.place);
      this.#put(above, at);
    }
  }
  /** Call it with an item whose order has become later. */
  sink(item) {
    for (; ; ) {
      const at = item.place;
      const left = this.#items[2 * at + 1];
      const right = this.#items[2 * at + 2];
      const below = left && right && this.#goesBefore(right, left) ? right : left;
      if (!below || !this.#goesBefore(below, item)) return;
      this.#put(item, below.place);
      this.#put(below, at);
    }
  }
  #put(item, at) {
    this.#items[at] = item;
    item.place = at;
  }
};

// packages/core/src/offenders/space-saving.ts
var SpaceSaving = class {
  #capacity;
  #byName = /* @__PURE__ */ new Map();
  #byCount = new Heap((one, other) => one.count < other.count);
  constructor(capacity) {
    this.#capacity = capacity;
  }
  /** The most by which the sum of a name's taken counts may be too low. */
  get error() {
    return this.#byName.size < this.#capacity ? 0 : this.#byCount.first.count;
  }
  add(name) {
    const seen = this.#byName.get(name) ?? this.#begin(name);
    seen.count++;
    this.#byCount.sink(seen);
  }
  #begin(name) {
    const isFull = this.#byName.size >= this.#capacity;
    const seen = isFull ? this.#byCount.first : { name, count: 0, error: 0, taken: 0, place: 0 };
    if (isFull) this.#byName.delete(seen.name);
    else this.#byCount.add(seen);
    seen.name = name;
    seen.error = seen.count;
    seen.taken = 0;
    this.#byName.set(name, seen);
    return seen;
  }
  /**
   * The certain occurrences of each name since the last call, if they exceed `least`. The sum taken of a name never
   * exceeds its occurrences.
   */
  take(least) {
    const taken = [];
    for (const seen of this.#byName.values()) {
      const count2 = untaken(seen);
      if (count2 <= least) continue;
      seen.taken += count2;
      taken.push([seen.name, count2]);
    }
    return taken;
  }
  /** Drops the occurrences of a name so far. */
  forget(name) {
    const seen = this.#byName.get(name);
    if (seen) seen.taken += untaken(seen);
  }
};
function untaken({ count: count2, error, taken }) {
  return count2 - error - taken;
}

// packages/core/src/offenders/refusal-log.ts
var WINDOWS = { "10m": 6e5, "1h": 36e5, "1d": 864e5 };
var SLICES = 6;
var KEPT = 2e3;
var SKETCHED = 4096;
var WORTH = 5e3;
var AT_ONCE = 200;
var EVERY_MS = 1e3;
var TIMES = 60;
var MAX_POLICIES = 100;
var MAX_LISTED2 = 1e3;
var RefusalLog = class {
  #slices;
  #byPolicy = /* @__PURE__ */ new Map();
  #timer;
  constructor(slices) {
    this.#slices = slices;
  }
  /** Bound, because stores pass it on without `this`. */
  note = (policy, identities) => {
    let counted = this.#byPolicy.get(policy);
    if (!counted) {
      if (this.#byPolicy.size >= MAX_POLICIES) return;
      counted = { sketch: new SpaceSaving(SKETCHED), seen: 0, refusals: 0, error: 0, lost: 0, times: 0 };
      this.#byPolicy.set(policy, counted);
    }
    for (const identity of identities) {
      counted.seen++;
      counted.refusals++;
      counted.sketch.add(identity);
    }
    this.#timer ??= setTimeout(() => this.#tick(), EVERY_MS).unref();
  };
  /** @throws SluiceError `INVALID_POLICY`, `STORE_UNAVAILABLE` */
  async offenders(query) {
    const { policy, top, window } = checkedQuery2(query);
    await this.#handOn(() => 0);
    const sliceMs = WINDOWS[window] / SLICES;
    const last = Math.floor(this.#slices.now() / sliceMs);
    const slices = await Promise.all(
      Array.from({ length: SLICES + 1 }, (_, n) => this.#slices.read(policy, window, last - n))
    );
    const sums = /* @__PURE__ */ new Map();
    for (const { counts } of slices) {
      for (const [identity, count2] of counts) sums.set(identity, (sums.get(identity) ?? 0) + count2);
    }
    const first2 = [...sums].sort(([, one], [, other]) => other - one).slice(0, top);
    return {
      offenders: first2.map(([identity, refusals2]) => ({ ...textValue(identity), refusals: refusals2 })),
      refusals: slices.reduce((sum, { refusals: refusals2 }) => sum + refusals2, 0),
      error: slices.reduce((sum, { error }) => sum + error, 0),
      since: (last - SLICES) * sliceMs
    };
  }
  forget(identity) {
    for (const { sketch } of this.#byPolicy.values()) sketch.forget(identity);
  }
  clear() {
    clearTimeout(this.#timer);
    this.#timer = void 0;
    this.#byPolicy.clear();
  }
  async close() {
    await this.#handOn(() => 0);
    this.clear();
  }
  async #tick() {
    await this.#handOn(({ seen }) => seen / WORTH);
    this.#timer = this.#byPolicy.size > 0 ? setTimeout(() => this.#tick(), EVERY_MS).unref() : void 0;
  }
  /** Hands on counts above `least` since the last time. A sketch at the end of its use hands on all counts. */
  async #handOn(least) {
    for (const [policy, counted] of [...this.#byPolicy]) {
      const isOver = ++counted.times >= TIMES;
      if (isOver) this.#byPolicy.delete(policy);
      const { sketch, refusals: refusals2 } = counted;
      const counts = sketch.take(isOver ? 0 : least(counted));
      let error = sketch.error - counted.error + counted.lost;
      if (refusals2 === 0 && error === 0 && counts.length === 0) continue;
      Object.assign(counted, { refusals: 0, error: sketch.error, lost: 0 });
      for (let i = 0; i === 0 || i < counts.length; i += AT_ONCE) {
        const some = counts.slice(i, i + AT_ONCE);
        try {
          await this.#slices.add({ policy, counts: some, refusals: i === 0 ? refusals2 : 0, error });
          error = 0;
        } catch {
          counted.lost = error + Math.max(0, ...counts.slice(i).map(([, count2]) => count2));
          break;
        }
      }
    }
  }
};
function refusalLog(where, option, slices) {
  if (option === void 0 || option === false) return void 0;
  return option === true ? new RefusalLog(slices) : invalidPolicy(where, "offenders", "true or false", option);
}
async function offendersOf(where, log, query) {
  if (log) return log.offenders(query);
  throw new SluiceError("INVALID_POLICY", `${where}: offenders: expected true, as offenders() was called`);
}
function checkedQuery2(query) {
  const where = "offenders";
  knownOptions(where, query, ["policy", "top", "in"]);
  const { policy, top = 20, in: window = "1h" } = query;
  if (typeof policy !== "string" || policy === "") invalidPolicy(where, "policy", "the name of a policy", policy);
  wholeNumber(where, "top", top, 1, MAX_LISTED2);
  if (!Object.hasOwn(WINDOWS, window)) invalidPolicy(where, "in", "'10m', '1h' or '1d'", window);
  return { policy, top, window };
}

// packages/core/src/store/events.ts
var STORE_EVENTS = ["store", "block", "unblock", "ban-evicted", "warning"];

// packages/core/src/util/given-clock.ts
var DAY_MS = 864e5;
function givenClock(where, clock) {
  optionalFunction(where, "clock", clock);
  if (clock === void 0) return void 0;
  const now = clock();
  if (!Number.isSafeInteger(now)) {
    const remedy = Number.isFinite(now) ? " (Math.floor makes them of fractions)" : "";
    invalidPolicy(where, "clock", `a function that returns whole milliseconds${remedy}`, now);
  }
  const real = Date.now();
  if (Math.abs(1e3 * now - real) < DAY_MS && Math.abs(now - real) > DAY_MS) {
    wrongPolicy(`${where}: clock: expected milliseconds, got seconds: ${now}`);
  }
  return clock;
}

// packages/core/src/memory/bans.ts
import { setImmediate as setImmediate2 } from "node:timers/promises";

// packages/core/src/blocks/ban-order.ts
function goesBefore(one, other) {
  return one.rung === other.rung ? one.until < other.until : one.rung < other.rung;
}

// packages/core/src/memory/rows.ts
var CHUNK_BYTES = 32768;
var FIRST_ROWS = 4;
var Rows2 = class {
  size = 0;
  /** The cells by chunk. `ints` is the same memory as `cells`, two ints to a cell. */
  cells = [];
  ints = [];
  keys = [];
  /** A row is in chunk `row >>> shift`, `row & mask` rows from its start. */
  shift;
  mask;
  /** Cells per row. */
  width;
  constructor(width) {
    this.width = width;
    this.shift = Math.max(0, Math.floor(Math.log2(CHUNK_BYTES / (8 * width))));
    this.mask = (1 << this.shift) - 1;
  }
  /** Adds a row at the end. Its cells contain arbitrary old values. */
  add(key) {
    const row = this.size++;
    const chunk = row >>> this.shift;
    const first2 = this.cells[0];
    if (chunk === this.cells.length)
      this.#make(chunk, chunk === 0 ? Math.min(FIRST_ROWS, this.mask + 1) : this.mask + 1);
    else if (chunk === 0 && first2 && row * this.width === first2.length) this.#make(0, 2 * row);
    this.keys[chunk][row & this.mask] = key;
    return row;
  }
  copy(from, to) {
    const [source, target] = [from >>> this.shift, to >>> this.shift];
    const start = (from & this.mask) * this.width;
    const cells = this.cells[source].subarray(start, start + this.width);
    this.cells[target].set(cells, (to & this.mask) * this.width);
    this.keys[target][to & this.mask] = this.keys[source][from & this.mask];
  }
  /** Removes the last row. Retains one empty chunk for rows that come and go at its border, unless one row fills it. */
  pop() {
    const last = --this.size;
    this.keys[last >>> this.shift].pop();
    const needed = last + this.mask >>> this.shift;
    if (this.cells.length <= needed + (this.mask > 0 ? 1 : 0)) return;
    for (const column of [this.cells, this.ints, this.keys]) column.pop();
  }
  #make(chunk, rows) {
    const cells = new Float64Array(rows * this.width);
    const old = this.cells[chunk];
    if (old) cells.set(old);
    this.cells[chunk] = cells;
    this.ints[chunk] = new Int32Array(cells.buffer);
    this.keys[chunk] ??= [];
  }
};

// packages/core/src/memory/keyed-rows.ts
var LONGEST = 1024;
var FACTORS = crypto.getRandomValues(new Int32Array(LONGEST + 1));
function keyHash(key) {
  const length = Math.min(key.length, LONGEST);
  let sum = Math.imul(FACTORS[0], key.length);
  for (let i = 0; i < length; i++) sum = sum + Math.imul(FACTORS[i + 1], key.charCodeAt(i)) | 0;
  return sum >>> 7;
}
var NONE2 = -1;
var SHELF_BITS = 6;
var SHELF = (1 << SHELF_BITS) - 1;
var CHUNK_BITS = 12;
var CHUNK = 1 << CHUNK_BITS;
var FIRST_CHAINS = 8;
var KeyedRows = class {
  shelves = [];
  #heads = [new Int32Array(FIRST_CHAINS).fill(NONE2)];
  #chains = FIRST_CHAINS;
  /** Chains before this round of splitting: a power of two. */
  #round = FIRST_CHAINS;
  #size = 0;
  get size() {
    return this.#size;
  }
  find(key) {
    const hash2 = keyHash(key);
    for (let ref = this.#head(this.#chainOf(hash2)); ref !== NONE2; ) {
      const rows = this.shelves[ref & SHELF];
      const row = ref >>> SHELF_BITS;
      const ints = rows.ints[row >>> rows.shift];
      const link = (row & rows.mask) * rows.width * 2;
      if (ints[link] === hash2 && rows.keys[row >>> rows.shift][row & rows.mask] === key) return ref;
      ref = ints[link + 1];
    }
    return NONE2;
  }
  /** Adds a row for a key that has none. All rows of a shelf have the same number of cells beside their links. */
  add(key, shelf, cells) {
    const hash2 = keyHash(key);
    this.shelves[shelf] ??= new Rows2(cells + 1);
    const ref = this.shelves[shelf].add(key) << SHELF_BITS | shelf;
    if (++this.#size > this.#chains) this.#split();
    this.#push(this.#chainOf(hash2), ref, hash2);
    return ref;
  }
  keyOf(ref) {
    const rows = this.shelves[ref & SHELF];
    const row = ref >>> SHELF_BITS;
    return rows.keys[row >>> rows.shift][row & rows.mask];
  }
  remove(ref) {
    this.#replace(this.#hashAt(ref), ref, this.#next(ref));
    const shelf = ref & SHELF;
    const rows = this.shelves[shelf];
    const last = rows.size - 1 << SHELF_BITS | shelf;
    if (last !== ref) {
      this.#replace(this.#hashAt(last), last, ref);
      rows.copy(last >>> SHELF_BITS, ref >>> SHELF_BITS);
    }
    rows.pop();
    this.#size--;
    for (let n = 0; n < 2 && this.#chains > FIRST_CHAINS && 2 * this.#size < this.#chains; n++) this.#join();
  }
  #link(ref) {
    const rows = this.shelves[ref & SHELF];
    return (ref >>> SHELF_BITS & rows.mask) * rows.width * 2;
  }
  #ints(ref) {
    const rows = this.shelves[ref & SHELF];
    return rows.ints[ref >>> SHELF_BITS >>> rows.shift];
  }
  #hashAt(ref) {
    return this.#ints(ref)[this.#link(ref)];
  }
  #next(ref) {
    return this.#ints(ref)[this.#link(ref) + 1];
  }
  #push(chain, ref, hash2) {
    const ints = this.#ints(ref);
    const link = this.#link(ref);
    ints[link] = hash2;
    ints[link + 1] = this.#head(chain);
    this.#setHead(chain, ref);
  }
  /** Makes the link to `ref` in the chain of `hash` point to `to`. */
  #replace(hash2, ref, to) {
    const chain = this.#chainOf(hash2);
    let before = this.#head(chain);
    if (before === ref) return this.#setHead(chain, to);
    for (let next = this.#next(before); next !== ref; next = this.#next(before)) before = next;
    this.#ints(before)[this.#link(before) + 1] = to;
  }
  #chainOf(hash2) {
    const chain = hash2 & 2 * this.#round - 1;
    return chain < this.#chains ? chain : chain - this.#round;
  }
  #head(chain) {
    return this.#heads[chain >>> CHUNK_BITS][chain & CHUNK - 1];
  }
  #setHead(chain, ref) {
    ;
    this.#heads[chain >>> CHUNK_BITS][chain & CHUNK - 1] = ref;
  }
  /** Adds a chain, and moves the rows into it that belong there from the next chain to be split. */
  #split() {
    const chain = this.#chains++;
    const from = chain - this.#round;
    if (this.#chains === 2 * this.#round) this.#round = this.#chains;
    this.#makeHead(chain);
    this.#rechain(from);
  }
  /** Removes the last chain: its rows return to the chain that it was split from. */
  #join() {
    const chain = --this.#chains;
    if (chain < this.#round) this.#round /= 2;
    this.#rechain(chain);
    if (this.#heads.length > (chain >>> CHUNK_BITS) + 2) this.#heads.pop();
  }
  #rechain(chain) {
    let ref = this.#head(chain);
    this.#setHead(chain, NONE2);
    while (ref !== NONE2) {
      const next = this.#next(ref);
      const hash2 = this.#hashAt(ref);
      this.#push(this.#chainOf(hash2), ref, hash2);
      ref = next;
    }
  }
  #makeHead(chain) {
    const chunk = chain >>> CHUNK_BITS;
    const heads = this.#heads[chunk];
    if (heads && (chain & CHUNK - 1) < heads.length) return;
    const more = new Int32Array(chunk === 0 ? 2 * chain : CHUNK).fill(NONE2);
    if (heads) more.set(heads);
    this.#heads[chunk] = more;
  }
};

// packages/core/src/memory/keyed-values.ts
var CHUNK_BITS2 = 10;
var MASK = (1 << CHUNK_BITS2) - 1;
var KeyedValues = class {
  #rows = new KeyedRows();
  /** The chunks, by row. */
  #chunks = [];
  get size() {
    return this.#rows.size;
  }
  get(key) {
    const ref = this.#rows.find(key);
    return ref === NONE2 ? void 0 : this.at(ref >>> SHELF_BITS);
  }
  set(key, value) {
    const ref = this.#rows.find(key);
    const row = (ref === NONE2 ? this.#rows.add(key, 0, 0) : ref) >>> SHELF_BITS;
    this.#chunks[row >>> CHUNK_BITS2] ??= [];
    this.#chunks[row >>> CHUNK_BITS2][row & MASK] = value;
  }
  delete(key) {
    const ref = this.#rows.find(key);
    if (ref === NONE2) return;
    const row = ref >>> SHELF_BITS;
    const last = this.size - 1;
    const chunk = this.#chunks[last >>> CHUNK_BITS2];
    const moved = chunk.pop();
    if (row !== last) this.#chunks[row >>> CHUNK_BITS2][row & MASK] = moved;
    if (chunk.length === 0) this.#chunks.pop();
    this.#rows.remove(ref);
  }
  /** The value of a number below `size`. */
  at(row) {
    return this.#chunks[row >>> CHUNK_BITS2][row & MASK];
  }
  keyAt(row) {
    return this.#rows.keyOf(row << SHELF_BITS);
  }
  /** The keys from the last to the first: a removal meanwhile skips none. */
  *keys() {
    for (let row = this.size - 1; row >= 0; row--) if (row < this.size) yield this.keyAt(row);
  }
};

// packages/core/src/memory/expiring-values.ts
var ExpiringValues = class {
  byKey = new KeyedValues();
  usage;
  #graceMs;
  /** The position of the walk. */
  next = 0;
  /** `graceMs`: the time that a value stays after its end, for clocks that may step back. */
  constructor(usage, graceMs) {
    this.usage = usage;
    this.#graceMs = graceMs;
  }
  get size() {
    return this.byKey.size;
  }
  /** The keys from the last to the first: a removal meanwhile skips none. */
  keys() {
    return this.byKey.keys();
  }
  /** Visits up to `max` values, removes those that have ended, and returns the number of visits. */
  sweep(now, max) {
    const visits = Math.min(max, this.size);
    for (let n = visits; n > 0; n--) {
      const value = this.visit();
      if (this.endOf(value) + this.#graceMs > now) this.next++;
      else this.remove(this.byKey.keyAt(this.next), value);
    }
    return visits;
  }
  /** The value at the position of the walk. */
  visit() {
    if (this.next >= this.size) this.next = 0;
    return this.byKey.at(this.next);
  }
  /** `before`: the current value of the key. */
  put(key, before, value) {
    this.byKey.set(key, value);
    this.usage.add(0, this.bytesOf(key, value) - (before ? this.bytesOf(key, before) : 0));
  }
  remove(key, value) {
    this.byKey.delete(key);
    this.usage.add(0, -this.bytesOf(key, value));
  }
};

// packages/core/src/memory/usage.ts
var Usage = class {
  keys = 0;
  bytes = 0;
  #whole;
  constructor(whole3) {
    this.#whole = whole3;
  }
  add(keys, bytes) {
    this.keys += keys;
    this.bytes += bytes;
    this.#whole?.add(keys, bytes);
  }
};
var ROW_BYTES = 18;
var TEXT_BYTES = 16;
var ONE_BYTE = 255;
function rowBytes(cells, key) {
  return ROW_BYTES + 8 * cells + textBytes(key);
}
function textBytes(text) {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) > ONE_BYTE) {
      bytes *= 2;
      break;
    }
  }
  return TEXT_BYTES + (bytes + 7 & ~7);
}

// packages/core/src/memory/blocks.ts
var BLOCK_BYTES = 68;
var BAN_BYTES = 80;
var Blocks = class extends ExpiringValues {
  #ranges = new BlockedRanges();
  #bans = new Heap(goesBefore);
  #banUsage = new Usage();
  #room;
  #onEvicted;
  /** `onEvicted`: called with each ban that ends before its time, for lack of room. */
  constructor(usage, graceMs, room, onEvicted) {
    super(usage, graceMs);
    this.#room = room;
    this.#onEvicted = onEvicted;
  }
  /** The number of blocks made by hand. */
  get sizeByHand() {
    return this.size - this.#bans.size;
  }
  endOf({ until }) {
    return until;
  }
  bytesOf(key, { reason, ban }) {
    return BLOCK_BYTES + (ban ? BAN_BYTES : 0) + rowBytes(1, key) + textBytes(reason);
  }
  /** The block with a number below `size`. The last one replaces a removed one. */
  at(index) {
    return { ...namesIn(this.byKey.keyAt(index)), block: this.byKey.at(index) };
  }
  find(policy, identity) {
    return this.byKey.get(keyOf(policy, identity));
  }
  get hasRanges() {
    return this.#ranges.size > 0;
  }
  /** The blocks of an address by its networks. */
  ofRanges(policies, identity) {
    return this.#ranges.find(policies, identity);
  }
  /**
   * Sets a block and returns whether there was room. For a ban there always is, as others are evicted. A block by hand can always be
   * replaced by another; if its new reason is longer and has no room, the earlier reason stays.
   */
  set(policy, identity, block) {
    const key = keyOf(policy, identity);
    const before = this.byKey.get(key);
    const stored = block.ban ? { ...block, key, rung: block.ban.rung, place: 0 } : this.#withRoom(key, before, block);
    if (!stored) return false;
    if (before && isBan(before)) this.#forgetBan(before);
    this.put(key, before, stored);
    this.#ranges.set(policy, identity, stored);
    if (isBan(stored)) this.#banUsage.add(0, this.bytesOf(key, stored));
    const byHand = this.usage.bytes - this.#banUsage.bytes;
    const max = Math.max(this.#room.blocks - byHand, this.#room.leastBans);
    while (this.#banUsage.bytes > max && this.#bans.first) this.#evict(this.#bans.first);
    if (isBan(stored)) this.#bans.add(stored);
    return true;
  }
  /** A block by hand that fits the room; undefined where there is none. */
  #withRoom(key, before, block) {
    const earlier = before && !isBan(before) ? before : void 0;
    const more = this.bytesOf(key, block) - (earlier ? this.bytesOf(key, earlier) : 0);
    const byHand = this.usage.bytes - this.#banUsage.bytes;
    if (more <= 0 || byHand + more <= this.#room.blocks) return block;
    return earlier && { ...block, reason: earlier.reason };
  }
  #evict(ban) {
    this.remove(ban.key, ban);
    this.#onEvicted({ ...namesIn(ban.key), block: ban });
  }
  #forgetBan(ban) {
    this.#bans.delete(ban);
    this.#banUsage.add(0, -this.bytesOf(ban.key, ban));
  }
  delete(policy, identity) {
    const key = keyOf(policy, identity);
    const block = this.byKey.get(key);
    if (block) this.remove(key, block);
  }
  remove(key, block) {
    super.remove(key, block);
    if (isBan(block)) this.#forgetBan(block);
    const { policy, identity } = namesIn(key);
    this.#ranges.delete(policy, identity);
  }
};
function isBan(block) {
  return block.ban !== void 0;
}
function keyOf(policy, identity) {
  return `${policy}
${identity}`;
}
function namesIn(key) {
  const end = key.indexOf("\n");
  return { policy: key.slice(0, end), identity: key.slice(end + 1) };
}

// packages/core/src/kernels/clock.ts
function instant(at, now, horizonMs) {
  return at > now && at <= now + horizonMs ? at : now;
}
function isAhead(at, now, horizonMs) {
  return at > now + horizonMs;
}

// packages/core/src/memory/table.ts
var SAMPLE = 8;
var NO_CELLS = new Float64Array(0);
var REFUSED = 1;
var Walk = class {
  row = 0;
  shelf;
  start;
  stride;
  constructor(start, stride) {
    this.shelf = start;
    this.start = start;
    this.stride = stride;
  }
};
var Table = class {
  id;
  /** The usage of states that have not been refused, and of those that have. */
  counted;
  refused;
  /** The refunds of a bucket so far, in unit·ms, while they are needed; 0 elsewhere. */
  refunded = 0;
  /** Whether the last `look` found a state. */
  hasState = false;
  /** The arguments of the last `look`. */
  identity = "";
  now = 0;
  need = 0;
  cells = NO_CELLS;
  at = 0;
  #ref = NONE2;
  #rows;
  #graceMs;
  #sweep = new Walk(0, 1);
  #ofCounted = new Walk(0, 2);
  #ofRefused = new Walk(REFUSED, 2);
  #ofAlike = new Walk(0, SHELF + 1);
  /** The shelf of the state that was added last. */
  #newest = 0;
  constructor({ id, graceMs, counted, refused, like }) {
    this.id = id;
    this.#graceMs = graceMs;
    this.#rows = like ? like.#rows : new KeyedRows();
    this.counted = like ? like.counted : new Usage(counted);
    this.refused = like ? like.refused : new Usage(refused);
  }
  get size() {
    return this.#rows.size;
  }
  /** Charges `cost`, whatever room there is. Does nothing where units are permits. */
  debit(_cost) {
  }
  /** Holds `cost` permits of an id for another `ttl`, and returns whether all were held. Does nothing where units are no permits. */
  renew(_cost, _permitId) {
    return true;
  }
  /** Records, for evictions only, that the identity of the last `look` was refused. Call it after `report`. */
  noteRefusal() {
    if (!this.hasState) return;
    if ((this.#ref & REFUSED) !== 0) this.#refusals++;
    else {
      this.#move(REFUSED);
      this.#refusals = 1;
    }
  }
  forget(identity) {
    const ref = this.#rows.find(identity);
    if (ref !== NONE2) this.#remove(ref);
  }
  /** Visits up to `max` states, and forgets those that have ended. */
  sweep(now, max) {
    for (let n = Math.min(max, this.size); n > 0; n--) {
      this.#visit(this.#sweep);
      if (this.end() + this.#graceMs <= now) this.#remove(this.#ref);
      else this.#sweep.row++;
    }
  }
  /** Evicts one of the next few states: the least consumed, or among refused ones the one with the fewest refusals. */
  evict(now, isRefused) {
    const walk = isRefused ? this.#ofRefused : this.#ofCounted;
    this.#evictOn(walk, isRefused ? this.refused.keys : this.counted.keys, now);
  }
  /** Evicts likewise among the states with as many cells as the newest one; never the only one. */
  evictAlike(now) {
    const states = this.#rows.shelves[this.#newest]?.size ?? 0;
    if (states < 2) return;
    this.#ofAlike.shelf = this.#ofAlike.start = this.#newest;
    this.#evictOn(this.#ofAlike, states, now);
  }
  #evictOn(walk, states, now) {
    let victim = NONE2;
    let least = Number.POSITIVE_INFINITY;
    let soonest = 0;
    for (let n = Math.min(SAMPLE, states); n > 0; n--) {
      this.#visit(walk);
      walk.row++;
      const end = this.end();
      const isRefused = (this.#ref & REFUSED) !== 0;
      const rank = end <= now ? -1 : isRefused ? this.#refusals : this.consumed(now);
      if (rank < least || isRefused && rank === least && end < soonest) {
        least = rank;
        soonest = end;
        victim = this.#ref;
      }
    }
    if (victim !== NONE2) this.#remove(victim);
  }
  find(identity, now, need) {
    this.identity = identity;
    this.now = now;
    this.need = need;
    const ref = this.#rows.find(identity);
    this.hasState = ref !== NONE2;
    if (ref !== NONE2) {
      this.#open(ref);
      if ((ref & REFUSED) !== 0) this.#clearRefusals();
    }
    return this.hasState;
  }
  /** Makes a state of `cells` cells for the identity: its first one, or one of another kind that replaces it. */
  keep(kind, cells) {
    const refusals2 = this.hasState && (this.#ref & REFUSED) !== 0 ? this.#refusals : 0;
    if (this.hasState) this.#withdraw(this.#ref);
    this.hasState = true;
    this.#place(kind, cells, refusals2 > 0 ? REFUSED : 0);
    if (refusals2 > 0) this.#refusals = refusals2;
  }
  /** Bytes of an identity's state beside its row. */
  bytesBeside(_identity) {
    return 0;
  }
  /** Counts a change of the current state's bytes beside its row. */
  took(bytes) {
    this.#usageOf(this.#ref).add(0, bytes);
  }
  /** Called when the state of an identity has been forgotten. */
  gone(_identity) {
  }
  /** The kind of the current state. States of one kind have the same number of cells; most tables have one kind. */
  get kind() {
    return (this.#ref & SHELF) >> 1;
  }
  /** The same memory as `cells`, two to a cell: the state is `ints` from `2 * at` on. */
  get ints() {
    const rows = this.#rows.shelves[this.#ref & SHELF];
    return rows.ints[this.#ref >>> SHELF_BITS >>> rows.shift];
  }
  drop() {
    if (this.hasState) this.#remove(this.#ref);
    this.hasState = false;
  }
  /** The refusals of the current state, where it is in a shelf of refused ones. */
  get #refusals() {
    return this.cells[this.at + this.#shelfOf(this.#ref).width - 2];
  }
  set #refusals(refusals2) {
    this.cells[this.at + this.#shelfOf(this.#ref).width - 2] = refusals2;
  }
  /**
   * Clears the refusals of a state that had ended when its identity came again. The state stays: for a clock
   * that steps back it has not ended.
   */
  #clearRefusals() {
    if (this.end() + this.#graceMs <= this.now) this.#move(0);
  }
  /** Moves the current state to the shelf of refused states, or of the others. */
  #move(refused) {
    const { kind } = this;
    const length = this.#shelfOf(this.#ref).width - 1 - (this.#ref & REFUSED);
    const state = this.cells.slice(this.at, this.at + length);
    this.#withdraw(this.#ref);
    this.#place(kind, length, refused);
    this.cells.set(state, this.at);
  }
  /** Visits the state at the position of a walk, or the next one after the end of a shelf. */
  #visit(walk) {
    const { shelves } = this.#rows;
    while (walk.row >= (shelves[walk.shelf]?.size ?? 0)) {
      walk.row = 0;
      walk.shelf += walk.stride;
      if (walk.shelf >= shelves.length) walk.shelf = walk.start;
    }
    this.#open(walk.row << SHELF_BITS | walk.shelf);
  }
  #place(kind, cells, refused) {
    const shelf = kind << 1 | refused;
    this.#open(this.#rows.add(this.identity, shelf, cells + refused));
    this.#usageOf(shelf).add(1, this.#bytesOf(this.#ref, this.identity));
    this.#newest = shelf;
  }
  #remove(ref) {
    const identity = this.#withdraw(ref);
    this.gone(identity);
  }
  /** Removes a row, and returns its identity. */
  #withdraw(ref) {
    const identity = this.#rows.keyOf(ref);
    this.#usageOf(ref).add(-1, -this.#bytesOf(ref, identity));
    this.#rows.remove(ref);
    return identity;
  }
  #bytesOf(ref, identity) {
    return rowBytes(this.#shelfOf(ref).width, identity) + this.bytesBeside(identity);
  }
  #usageOf(ref) {
    return (ref & REFUSED) === 0 ? this.counted : this.refused;
  }
  #shelfOf(ref) {
    return this.#rows.shelves[ref & SHELF];
  }
  #open(ref) {
    const rows = this.#rows.shelves[ref & SHELF];
    const row = ref >>> SHELF_BITS;
    this.#ref = ref;
    this.cells = rows.cells[row >>> rows.shift];
    this.at = (row & rows.mask) * rows.width + 1;
  }
};

// packages/core/src/memory/bucket-table.ts
var DEBT = 0;
var AT = 1;
var REFUNDED2 = 2;
var FROM = 3;
var UNTIL = 4;
var PLAIN = 0;
var COUNTED = 1;
var CELLS = [2, 5];
var BucketTable = class _BucketTable extends Table {
  #limit;
  #windowMs;
  #capacity;
  #stepMs;
  #slowest;
  #debt = 0;
  #at = 0;
  /** The debt of the current state that each ms pays off. */
  #pace = 0;
  #kind = PLAIN;
  #from = 0;
  /** The time until which the refunded amount is needed: as long as the charges would have counted. */
  #until = 0;
  constructor([limit, windowMs, capacity, stepMs], terms) {
    super(terms);
    this.#limit = limit;
    this.#windowMs = windowMs;
    this.#capacity = capacity;
    this.#stepMs = stepMs;
    this.#slowest = terms.like instanceof _BucketTable ? terms.like.#slowest : { limit: this.#limit };
    if (this.#limit > 0) this.#slowest.limit = Math.min(this.#slowest.limit || this.#limit, this.#limit);
  }
  look(identity, now, need) {
    this.#at = now;
    this.#debt = 0;
    this.#pace = this.#limit;
    if (this.#kind === COUNTED) this.#forgetRefunds();
    if (this.find(identity, now, need)) {
      if (this.kind === COUNTED) this.#readRefunds();
      const since = this.#storedAt;
      this.#at = instant(since, now, this.#windowMs);
      this.#pace = this.#paceOf(this.cells[this.at + DEBT]);
      this.#debt = this.#drained(Math.min(since, this.#at), this.#at, this.#pace);
    }
    return this.#wait(need);
  }
  charge(cost) {
    if (this.#debt > this.#capacity * this.#windowMs) return this.heal();
    this.#debt = charge(this.#debt, cost, this.#windowMs, this.#capacity);
    this.#pace = this.#limit;
    this.#write();
  }
  debit(cost) {
    this.#debt = Math.min(Number.MAX_SAFE_INTEGER, this.#debt + cost * this.#windowMs);
    this.#pace = this.#paceOf(this.#debt);
    this.#write();
  }
  refund(cost, receipt, chargedAt, _lease, before) {
    if (!this.hasState) return;
    const { debt, refunded, from } = refund(
      this.#debt,
      this.refunded,
      this.#from,
      this.#at,
      cost,
      receipt,
      before,
      chargedAt,
      this.#limit,
      this.#windowMs,
      this.#capacity,
      this.#stepMs
    );
    if (refunded !== this.refunded || from !== this.#from) {
      this.#kind = COUNTED;
      this.#until = Math.max(this.#until, this.#paidOffAt());
      this.refunded = refunded;
      this.#from = from;
    }
    this.#debt = debt;
    this.#pace = this.#paceOf(debt);
    this.#write();
  }
  heal() {
    if (this.hasState && isAhead(this.#storedAt, this.now, this.#windowMs)) this.#write();
  }
  report(values, from, admitted) {
    values[from] = Math.max(0, remaining(this.#debt, this.#windowMs, this.#capacity));
    values[from + 1] = admitted ? 0 : this.#wait(this.need);
    values[from + 2] = this.#wait(this.#capacity);
    values[from + 3] = this.#debt;
    return from + STRIDE;
  }
  end() {
    if (this.kind === COUNTED) return this.cells[this.at + UNTIL];
    const at = this.#storedAt;
    return at + this.#waitAt(this.cells[this.at + DEBT], at, this.#capacity, this.#slowest.limit);
  }
  consumed(now) {
    const at = this.#storedAt;
    const pace = this.#paceOf(this.cells[this.at + DEBT]);
    return this.#drained(at, Math.max(at, now), pace) / (Math.max(1, this.#capacity) * this.#windowMs);
  }
  get #storedAt() {
    return this.cells[this.at + AT];
  }
  #paceOf(debt) {
    return paceOf(debt, this.#limit, this.#windowMs, this.#capacity);
  }
  #drained(since, at, pace) {
    return drain(this.cells[this.at + DEBT], since, at, pace, this.#stepMs);
  }
  #wait(cost) {
    const wait = this.#waitAt(this.#debt, this.#at, cost, this.#pace);
    return wait > 0 ? wait + this.#at - this.now : wait;
  }
  #waitAt(debt, at, cost, pace) {
    return waitFor(debt, at, cost, pace, this.#windowMs, this.#capacity, this.#stepMs);
  }
  #forgetRefunds() {
    this.#kind = PLAIN;
    this.refunded = 0;
    this.#from = 0;
    this.#until = 0;
  }
  #readRefunds() {
    this.#kind = COUNTED;
    this.refunded = this.cells[this.at + REFUNDED2];
    this.#from = this.cells[this.at + FROM];
    this.#until = this.cells[this.at + UNTIL];
  }
  #paidOffAt() {
    return this.#at + this.#waitAt(this.#debt, this.#at, this.#capacity, this.#pace);
  }
  #write() {
    if (this.#kind === PLAIN && this.#wait(this.#capacity) === 0) return this.drop();
    if (!this.hasState || this.kind !== this.#kind) this.keep(this.#kind, CELLS[this.#kind]);
    this.cells[this.at + DEBT] = this.#debt;
    this.cells[this.at + AT] = this.#at;
    if (this.#kind === PLAIN) return;
    this.cells[this.at + REFUNDED2] = this.refunded;
    this.cells[this.at + FROM] = this.#from;
    this.cells[this.at + UNTIL] = Math.max(this.#until, this.#paidOffAt());
  }
};

// packages/core/src/memory/concurrency-table.ts
var END = 0;
var CELLS2 = 1;
var PERMITS_BYTES = 440;
var PERMIT_BYTES = 90;
var NO_PERMITS = { permitIds: [], ends: [] };
var ConcurrencyTable = class _ConcurrencyTable extends Table {
  #limit;
  #ttlMs;
  /** One entry per state. */
  #byIdentity;
  #permits = NO_PERMITS;
  /** The index of the first permit that counts. */
  #first = 0;
  constructor([limit, ttlMs], terms) {
    super(terms);
    this.#limit = limit;
    this.#ttlMs = ttlMs;
    this.#byIdentity = terms.like instanceof _ConcurrencyTable ? terms.like.#byIdentity : new KeyedValues();
  }
  look(identity, now, need) {
    this.#permits = this.find(identity, now, need) && this.#byIdentity.get(identity) || NO_PERMITS;
    this.#first = firstHeld(this.#permits.ends, now);
    return this.#wait();
  }
  charge(cost, permitId) {
    const permits2 = Math.min(cost, this.#limit - this.#held);
    if (permits2 <= 0) return;
    if (!this.hasState) this.#open();
    this.#permits.permitIds.splice(0, this.#first);
    this.#permits.ends.splice(0, this.#first);
    this.took(-PERMIT_BYTES * this.#first);
    this.#hold(permitId, permits2);
  }
  /** A refunded permit is released. */
  refund(cost, _receipt, chargedAt, permitId) {
    const likely = firstHeld(this.#permits.ends, chargedAt + this.#ttlMs - 1);
    const released = this.#release(permitId, cost, likely);
    if (released < cost) this.#release(permitId, cost - released, 0);
    if (this.hasState && this.#permits.ends.length === 0) this.drop();
  }
  renew(cost, permitId) {
    const permits2 = this.#release(permitId, cost, this.#first);
    if (permits2 > 0) this.#hold(permitId, permits2);
    return permits2 === cost;
  }
  heal() {
    const { ends } = this.#permits;
    const latest = this.now + this.#ttlMs;
    for (let i = ends.length - 1; i >= 0 && ends[i] > latest; i--) ends[i] = latest;
  }
  report(values, from, admitted) {
    const { ends } = this.#permits;
    values[from] = Math.max(0, this.#limit - this.#held);
    values[from + 1] = admitted ? 0 : this.#wait();
    values[from + 2] = this.#held === 0 ? 0 : Math.min(ends.at(-1) - this.now, this.#ttlMs);
    values[from + 3] = 0;
    return from + STRIDE;
  }
  end() {
    return this.cells[this.at + END];
  }
  /** Forgetting a held permit would admit one too many. */
  consumed() {
    return 1;
  }
  bytesBeside(identity) {
    return PERMITS_BYTES + PERMIT_BYTES * (this.#byIdentity.get(identity)?.ends.length ?? 0);
  }
  gone(identity) {
    this.#byIdentity.delete(identity);
  }
  get #held() {
    return this.#permits.ends.length - this.#first;
  }
  #wait() {
    return waitFor2(this.#permits.ends, this.#first, this.now, this.need, this.#limit, this.#ttlMs);
  }
  #open() {
    this.keep(0, CELLS2);
    this.#permits = { permitIds: [], ends: [] };
    this.#byIdentity.set(this.identity, this.#permits);
  }
  /** Holds new permits. They end last, unless the clock has stepped back. */
  #hold(permitId, permits2) {
    const { permitIds, ends } = this.#permits;
    const end = this.now + this.#ttlMs;
    let at = ends.length;
    while (at > 0 && ends[at - 1] > end) at--;
    for (let n = 0; n < permits2; n++) {
      permitIds.splice(at, 0, permitId);
      ends.splice(at, 0, end);
    }
    this.took(PERMIT_BYTES * permits2);
    this.cells[this.at + END] = ends.at(-1);
    this.#first = firstHeld(ends, this.now);
  }
  /** Releases up to `max` permits of an id, from index `from` on, and returns their number. */
  #release(permitId, max, from) {
    const { permitIds, ends } = this.#permits;
    let released = 0;
    for (let i = from; i < permitIds.length && released < max; ) {
      if (permitIds[i] !== permitId) i++;
      else {
        permitIds.splice(i, 1);
        ends.splice(i, 1);
        released++;
      }
    }
    if (released > 0) this.took(-PERMIT_BYTES * released);
    this.#first = firstHeld(ends, this.now);
    return released;
  }
};

// packages/core/src/kernels/ceiling.ts
var LARGEST_INT = 2 ** 31 - 1;
var LARGEST_EXACT = 2 ** 53 - 1;
function ceilingOf(limit, windowMs) {
  return Math.max(limit, Math.min(LARGEST_INT, Math.floor(LARGEST_EXACT / windowMs)));
}

// packages/core/src/memory/counter-table.ts
var START2 = 0;
var COUNT = 1;
var CELLS3 = 2;
var CounterTable = class extends Table {
  #limit;
  #windowMs;
  #byClock;
  /** The maximum count. */
  #max;
  #start = 0;
  #count = 0;
  constructor([limit, windowMs, withRefusals, byClock], terms) {
    super(terms);
    this.#limit = limit;
    this.#windowMs = windowMs;
    this.#byClock = byClock === 1;
    this.#max = withRefusals === 1 ? ceilingOf(this.#limit, this.#windowMs) : this.#limit;
  }
  look(identity, now, need) {
    this.#count = 0;
    if (this.find(identity, now, need)) {
      const start = this.#storedStart;
      if (start <= now && now < start + this.#windowMs) this.#read(start);
      else this.#readOther(start, now);
    } else this.#start = startOf(now, this.#windowMs, this.#byClock);
    return this.#wait(need);
  }
  #read(start) {
    this.#start = start;
    this.#count = this.cells[this.at + COUNT];
  }
  /** Reads a window that is over, or one that has not begun for a clock that stepped back. */
  #readOther(start, now) {
    const at = instant(start, now, this.#windowMs);
    const isOver = at >= start + this.#windowMs;
    if (!isOver) this.#read(start);
    if (isOver || start > at) this.#start = startOf(at, this.#windowMs, this.#byClock);
  }
  charge(cost) {
    this.#count = Math.max(this.#count, Math.min(this.#max, this.#count + cost));
    this.#write();
  }
  debit(cost) {
    this.#count = Math.min(ceilingOf(this.#limit, this.#windowMs), this.#count + cost);
    this.#write();
  }
  refund(cost, receipt) {
    if (!this.hasState || this.#start !== receipt) return;
    this.#count = Math.max(0, this.#count - cost);
    this.#write();
  }
  heal() {
    if (this.hasState && isAhead(this.#storedStart, this.now, this.#windowMs)) this.#write();
  }
  report(values, from, admitted) {
    values[from] = Math.max(0, this.#limit - this.#count);
    values[from + 1] = admitted ? 0 : this.#wait(this.need);
    values[from + 2] = this.#count === 0 ? 0 : this.#endsIn();
    values[from + 3] = this.#start;
    return from + STRIDE;
  }
  end() {
    return this.#storedStart + this.#windowMs;
  }
  consumed() {
    return this.cells[this.at + COUNT] / Math.max(1, this.#limit);
  }
  get #storedStart() {
    return this.cells[this.at + START2];
  }
  #endsIn() {
    return this.#start + this.#windowMs - this.now;
  }
  #wait(cost) {
    return waitFor3(this.#count, this.#endsIn(), cost, this.#limit);
  }
  #write() {
    if (this.#count === 0) return this.drop();
    if (!this.hasState) this.keep(0, CELLS3);
    this.cells[this.at + START2] = this.#start;
    this.cells[this.at + COUNT] = this.#count;
  }
};

// packages/core/src/memory/log-table.ts
var COUNT2 = 0;
var ENTRIES = 1;
var MAX_ENTRIES = 2 ** 20;
var NO_ENTRIES = new Float64Array(0);
var LogTable = class extends Table {
  /** Maximum of entries that can count. */
  #max;
  /** The longest window of any limit of this log. */
  #longestMs;
  #limits;
  /** The room of each kind, in entries. */
  #rooms;
  /** Whether more may count than this table's limits admit, as another table has the same states. */
  #isCarried;
  /** The log at the decision's instant: `#entries` from `#first` up to `#last`, including those that do not count. */
  #entries = NO_ENTRIES;
  #first = 0;
  #last = 0;
  #at = 0;
  /** Whether the stored entries are from an impossible future, so that `#entries` differ from them. */
  #isAmended = false;
  constructor([max, longestMs, ...pairs], terms) {
    super(terms);
    this.#max = max;
    this.#longestMs = longestMs;
    this.#limits = pairs.flatMap(
      (limit, i) => i % 2 === 0 ? { limit, windowMs: pairs[i + 1], live: 0 } : []
    );
    this.#isCarried = terms.isCarried ?? false;
    this.#rooms = roomsFor(this.#isCarried ? MAX_ENTRIES : this.#max);
  }
  look(identity, now, need) {
    if (this.find(identity, now, need)) this.#read();
    else this.#take(NO_ENTRIES);
    const newest = this.#newest(now);
    this.#at = instant(newest, now, this.#longestMs);
    this.#isAmended = isAhead(newest, now, this.#longestMs);
    if (this.#isAmended) this.#take(this.#retained(newest).map((entry) => Math.min(entry, now)));
    this.#count();
    let longest = 0;
    for (const limit of this.#limits) {
      const wait = this.#wait(need, limit);
      if (wait < 0) return wait;
      if (wait > longest) longest = wait;
    }
    return longest;
  }
  charge(cost) {
    const added = Math.min(cost, this.#max);
    let max = 0;
    for (const limit of this.#limits) {
      limit.live = Math.min(limit.live + added, limit.limit);
      if (limit.live > max) max = limit.live;
    }
    const fits = this.hasState && !this.#isAmended && this.#last - this.#first + added <= this.#roomOf(this.kind);
    if (!fits) this.#write(this.#entries.slice(this.#last - (max - added), this.#last), added);
    else for (let n = 0; n < added; n++) this.#entries[this.#last++] = this.#at;
    this.cells[this.at + COUNT2] = this.#last - this.#first;
  }
  debit(cost) {
    this.charge(cost);
  }
  refund(cost, receipt) {
    if (!this.hasState) return;
    const entries = this.#isAmended ? this.#entries.slice(this.#first, this.#last) : this.#retained(this.#newest(0));
    let end = entries.length;
    while (end > 0 && entries[end - 1] > receipt) end--;
    let start = end;
    while (start > 0 && end - start < cost && entries[start - 1] === receipt) start--;
    if (start === end) return;
    entries.copyWithin(start, end);
    this.#write(entries.subarray(0, entries.length - (end - start)));
    this.#count();
  }
  heal() {
    if (this.hasState && this.#isAmended) this.#write(this.#entries);
  }
  report(values, from, admitted) {
    for (const limit of this.#limits) {
      values[from++] = limit.limit - limit.live;
      values[from++] = admitted ? 0 : this.#wait(this.need, limit);
      values[from++] = this.#last === this.#first ? 0 : Math.max(0, this.#newest(0) + limit.windowMs - this.now);
      values[from++] = this.#at;
    }
    return from;
  }
  end() {
    return this.cells[this.at + this.cells[this.at + COUNT2]] + this.#longestMs;
  }
  consumed(now) {
    const first2 = this.at + ENTRIES;
    const last = first2 + this.cells[this.at + COUNT2];
    let share2 = 0;
    for (const { limit, windowMs } of this.#limits) {
      const live = last - firstLive(this.cells, first2, last, now, windowMs);
      share2 = Math.max(share2, live / Math.max(1, limit));
    }
    return share2;
  }
  #newest(otherwise) {
    return this.#last > this.#first ? this.#entries[this.#last - 1] : otherwise;
  }
  #wait(cost, { limit, windowMs, live }) {
    const wait = waitFor4(this.#entries, this.#last, live, this.#at, cost, limit, windowMs);
    return wait > 0 ? wait + this.#at - this.now : wait;
  }
  #count() {
    for (const limit of this.#limits) limit.live = Math.min(this.#countAt(this.#at, limit), limit.limit);
  }
  #countAt(at, { windowMs }) {
    return this.#last - firstLive(this.#entries, this.#first, this.#last, at, windowMs);
  }
  /** A copy of the entries that counted when the newest came: no more can ever count again, even if the clock steps back. */
  #retained(newest) {
    let max = 0;
    for (const limit of this.#limits) {
      const count2 = this.#countAt(newest, limit);
      max = Math.max(max, this.#isCarried ? count2 : Math.min(count2, limit.limit));
    }
    return this.#entries.slice(this.#last - max, this.#last);
  }
  #take(entries) {
    this.#entries = entries;
    this.#first = 0;
    this.#last = entries.length;
  }
  #read() {
    this.#entries = this.cells;
    this.#first = this.at + ENTRIES;
    this.#last = this.#first + this.cells[this.at + COUNT2];
  }
  /** Writes `entries`, which are not in the cells, and then `added` entries of this instant. */
  #write(entries, added = 0) {
    const count2 = entries.length + added;
    if (count2 === 0) {
      this.drop();
      return this.#take(NO_ENTRIES);
    }
    const kind = this.#kindFor(count2);
    if (!this.hasState || kind !== this.kind && kind !== this.kind - 1) this.keep(kind, ENTRIES + this.#roomOf(kind));
    this.cells[this.at + COUNT2] = count2;
    this.cells.set(entries, this.at + ENTRIES);
    this.#read();
    this.cells.fill(this.#at, this.#last - added, this.#last);
    this.#isAmended = false;
  }
  #roomOf(kind) {
    return this.#rooms[kind];
  }
  /** The smallest kind with an eighth of its room free; the largest, if there is none. */
  #kindFor(count2) {
    const largest = this.#rooms.length - 1;
    let kind = 0;
    while (kind < largest && count2 > this.#roomOf(kind) - (this.#roomOf(kind) >>> 3)) kind++;
    return kind;
  }
};
function roomsFor(max) {
  const largest = max + (max >>> 3);
  const rooms = [];
  for (let room = 1; room < largest; room *= 2) rooms.push(room);
  return [...rooms, largest];
}

// packages/core/src/memory/segments-table.ts
var SEGMENT = 0;
var LARGEST_INT2 = 2 ** 31 - 1;
var SegmentsTable = class extends Table {
  #limit;
  #windowMs;
  #segments;
  #segmentMs;
  #edge;
  #withRefusals;
  #isWide;
  /** The maximum that the counters hold. */
  #max;
  #fitsInts;
  #cells;
  #segment = 0;
  #total = 0;
  /** The counts at the decision's instant, newest first; the last is the edge. They may differ from the stored ones. */
  #counts;
  /** The time from the start of the segment to the decision's instant. */
  #offset = 0;
  #at = 0;
  constructor([limit, windowMs, segments, edge], terms) {
    super(terms);
    this.#limit = limit;
    this.#windowMs = windowMs;
    this.#segments = segments;
    this.#segmentMs = this.#windowMs / this.#segments;
    this.#withRefusals = (edge & WITH_REFUSALS) !== 0;
    this.#isWide = edge >= WIDE;
    this.#edge = edge % WITH_REFUSALS;
    this.#max = this.#withRefusals ? ceilingOf(this.#limit, this.#windowMs) : this.#limit;
    this.#counts = new Float64Array(this.#segments + 1);
    this.#fitsInts = this.#max <= LARGEST_INT2;
    const numbers = this.#counts.length + 1;
    this.#cells = 1 + (this.#fitsInts ? Math.ceil(numbers / 2) : numbers);
  }
  look(identity, now, need) {
    const isFound = this.find(identity, now, need);
    const start = isFound ? this.#storedSegment * this.#segmentMs : now;
    this.#at = instant(start, now, this.#windowMs);
    this.#segment = Math.floor(this.#at / this.#segmentMs);
    this.#offset = this.#at - this.#segment * this.#segmentMs;
    this.#read(isFound ? Math.max(0, this.#segment - this.#storedSegment) : this.#segments + 1);
    if (isFound && isAhead(start, now, this.#windowMs)) this.#bringBack();
    return this.#wait(need);
  }
  charge(cost) {
    this.#add(Math.min(cost, this.#withRefusals ? Math.max(0, this.#max - this.#total) : this.#room()));
  }
  debit(cost) {
    const top = this.#isWide ? ceilingOf(this.#limit, this.#windowMs) : this.#max;
    this.#add(Math.max(0, Math.min(cost, top - this.#total)));
  }
  #add(units) {
    this.#counts[0] = this.#counts[0] + units;
    this.#total += units;
    this.#write();
  }
  refund(cost, receipt) {
    const k = this.#segment - receipt;
    if (!this.hasState || k < 0 || k > this.#segments) return;
    const units = Math.min(cost, this.#counts[k]);
    this.#counts[k] = this.#counts[k] - units;
    if (k < this.#segments) this.#total -= units;
    this.#write();
  }
  heal() {
    if (this.hasState && isAhead(this.#storedSegment * this.#segmentMs, this.now, this.#windowMs)) this.#write();
  }
  report(values, from, admitted) {
    values[from] = this.#room();
    values[from + 1] = admitted ? 0 : this.#wait(this.need);
    values[from + 2] = this.#reset();
    values[from + 3] = this.#segment;
    return from + STRIDE;
  }
  end() {
    this.#read(0);
    const start = this.#storedSegment * this.#segmentMs;
    return start + resetAfter(this.#counts, 0, this.#segments, this.#segmentMs, this.#edge);
  }
  consumed(now) {
    this.#read(Math.max(0, Math.floor(now / this.#segmentMs) - this.#storedSegment));
    return this.#total / Math.max(1, this.#limit);
  }
  get #storedSegment() {
    return this.cells[this.at + SEGMENT];
  }
  /** Reads the total and the counts, moved by `by` segments. */
  #read(by) {
    const counts = this.#counts;
    if (by > this.#segments) {
      this.#total = 0;
      counts.fill(0);
      return;
    }
    const stored = this.#fitsInts ? this.ints : this.cells;
    const total = this.#totalAt;
    for (let k = this.#segments; k >= 0; k--) counts[k] = stored[total + 1 + k];
    this.#total = stored[total];
    if (by === 0) return;
    this.#total -= leaving(counts, by, this.#segments);
    counts.copyWithin(by, 0);
    counts.fill(0, 0, by);
  }
  /** The position of the stored total, in ints or cells; the counts follow it. */
  get #totalAt() {
    const at = this.at + SEGMENT + 1;
    return this.#fitsInts ? 2 * at : at;
  }
  /**
   * Reads a state from an impossible future as if its newest segment were this one. The value of a weighted
   * edge depends on the instant, so it moves into the window proper, where it counts in full.
   */
  #bringBack() {
    if (this.#edge < WEIGHTED_DOWN) return;
    const units = Math.max(0, Math.min(this.#counts[this.#segments], this.#max - this.#total));
    this.#counts[this.#segments] = 0;
    this.#counts[this.#segments - 1] = this.#counts[this.#segments - 1] + units;
    this.#total += units;
  }
  #edgeUnits() {
    return edgeUnits(this.#counts[this.#segments], this.#offset, this.#segmentMs, this.#edge);
  }
  #room() {
    return Math.max(0, this.#limit - this.#total - this.#edgeUnits());
  }
  #wait(cost) {
    const wait = waitFor5(
      this.#counts,
      this.#total,
      this.#offset,
      cost,
      this.#limit,
      this.#segments,
      this.#segmentMs,
      this.#edge
    );
    return wait > 0 ? wait + this.#at - this.now : wait;
  }
  #reset() {
    const reset = resetAfter(this.#counts, this.#offset, this.#segments, this.#segmentMs, this.#edge);
    return reset > 0 ? reset + this.#at - this.now : 0;
  }
  #write() {
    if (this.#reset() === 0) return this.drop();
    if (!this.hasState) this.keep(0, this.#cells);
    this.cells[this.at + SEGMENT] = this.#segment;
    const stored = this.#fitsInts ? this.ints : this.cells;
    const total = this.#totalAt;
    stored[total] = this.#total;
    for (let k = 0; k <= this.#segments; k++) stored[total + 1 + k] = this.#counts[k];
  }
};

// packages/core/src/memory/tables.ts
var TABLE_BYTES = 3800;
var SAMPLE2 = 8;
var MAX_EVICTIONS = 64;
var COUNTED_SHARE = 1 / 8;
var Tables = class {
  /** The usage of the whole store, blocks included. */
  #all;
  #counted;
  #refused;
  #bounds;
  #byId = new KeyedValues();
  /** The tables that share states, for cells that are carried, by the id of the table that stores them. */
  #alike = /* @__PURE__ */ new WeakMap();
  /** The fullest known tables: of states that have not been refused, and of those that have. */
  #fullest = { counted: void 0, refused: void 0 };
  /** The positions of the walks: for the fullest table, and for states that have ended. */
  #nextSampled = 0;
  #nextSwept = 0;
  constructor(all, bounds) {
    this.#all = all;
    this.#counted = new Usage(all);
    this.#refused = new Usage(all);
    this.#bounds = bounds;
  }
  /** States that were evicted so far. */
  evicted = 0;
  get size() {
    return this.#byId.size;
  }
  find(id, cell) {
    const table = this.#byId.get(id);
    if (table) return cell.isCarried ? this.#like(table, cell) : table;
    const made2 = makeTable(cell, this.#termsOf(id, cell));
    this.#all.add(0, TABLE_BYTES + textBytes(id));
    this.#byId.set(id, made2);
    return made2;
  }
  /** A table that shares the states of another, for a plan with other amounts. */
  #like(table, cell) {
    let ofCell = this.#alike.get(cell);
    if (!ofCell) {
      ofCell = /* @__PURE__ */ new Map();
      this.#alike.set(cell, ofCell);
    }
    let alike2 = ofCell.get(table.id);
    if (!alike2) {
      alike2 = makeTable(cell, { ...this.#termsOf(table.id, cell), like: table });
      ofCell.set(table.id, alike2);
    }
    return alike2;
  }
  #termsOf(id, { isCarried = false }) {
    return { id, graceMs: this.#bounds.graceMs, counted: this.#counted, refused: this.#refused, isCarried };
  }
  /** Forgets a value in every table of a kind. */
  forget(start, value) {
    for (let n = 0; n < this.size; n++) {
      const table = this.#byId.at(n);
      if (table.id.endsWith(`
${start}`)) table.forget(value);
    }
  }
  /**
   * Evicts until there is room, within a bounded number of steps. A decision may have added more than so many small evicted states
   * free. It then evicts states as large as those it added, so that no sequence of decisions outgrows the bound.
   * Returns whether tables were removed.
   */
  makeRoom(now, decided2) {
    const before = this.size;
    for (let n = MAX_EVICTIONS + decided2.length; n > 0 && this.areTooMany; n--) this.#evict(now);
    for (const table of decided2) if (this.#all.bytes > this.#bounds.maxBytes) table.evictAlike(now);
    return this.size < before;
  }
  /** Visits up to `max` states and tables, and removes those that have ended. Returns whether tables were removed. */
  sweep(now, max) {
    const before = this.size;
    for (let n = before, left = max; n > 0 && left > 0; n--) {
      if (this.#nextSwept >= this.size) this.#nextSwept = 0;
      const table = this.#byId.at(this.#nextSwept);
      const visits = Math.min(left - 1, table.size);
      table.sweep(now, visits);
      left -= 1 + visits;
      if (table.size > 0) this.#nextSwept++;
      else this.#drop(table);
    }
    return this.size < before;
  }
  get areTooMany() {
    return this.#all.keys > this.#bounds.maxKeys || this.#all.bytes > this.#bounds.maxBytes;
  }
  /**
   * Evicts a state that has not been refused, or a refused one if those exceed their share. It takes it from the table with the
   * most: otherwise a new table would lose every new state at once, and limit nothing.
   */
  #evict(now) {
    const byKeys = this.#all.keys > this.#bounds.maxKeys;
    const counted = amount(this.#counted, byKeys);
    const refused = amount(this.#refused, byKeys);
    const isCrowded = this.#counted.keys <= 1 || counted < (counted + refused) * COUNTED_SHARE;
    const isRefused = refused > 0 && isCrowded;
    const table = this.#findFullest(isRefused ? "refused" : "counted", byKeys);
    if (!table) return;
    table.evict(now, isRefused);
    this.evicted++;
    if (table.size === 0) this.#drop(table);
  }
  /** The fullest among the fullest known table and the next few. Within a few evictions that is the fullest of all. */
  #findFullest(kind, byKeys) {
    let fullest = this.#fullest[kind];
    let largest = fullest ? amount(fullest[kind], byKeys) : 0;
    for (let n = Math.min(SAMPLE2, this.size); n > 0; n--) {
      if (this.#nextSampled >= this.size) this.#nextSampled = 0;
      const table = this.#byId.at(this.#nextSampled++);
      const size = amount(table[kind], byKeys);
      if (size > largest) {
        largest = size;
        fullest = table;
      } else if (table.size === 0) this.#drop(table);
    }
    this.#fullest[kind] = fullest;
    return fullest;
  }
  #drop(table) {
    this.#byId.delete(table.id);
    this.#alike = /* @__PURE__ */ new WeakMap();
    this.#all.add(0, -TABLE_BYTES - textBytes(table.id));
    if (this.#fullest.counted === table) this.#fullest.counted = void 0;
    if (this.#fullest.refused === table) this.#fullest.refused = void 0;
  }
};
function amount({ keys, bytes }, byKeys) {
  return byKeys ? keys : bytes;
}
var TABLES = {
  bucket: BucketTable,
  counter: CounterTable,
  segments: SegmentsTable,
  log: LogTable,
  concurrency: ConcurrencyTable
};
function makeTable({ kernel, params }, terms) {
  if (!Object.hasOwn(TABLES, kernel))
    invalidPolicy("memoryStore", "kernel", `one of ${Object.keys(TABLES).join(", ")}`, kernel);
  return new TABLES[kernel](params, terms);
}

// packages/core/src/memory/states.ts
var SWEPT_PER_INSERT = 2;
var States = class {
  bounds;
  /** The usage of all states and blocks. */
  usage = new Usage();
  #tables;
  /** Starts the sweeper. Call it when there are new entries that end. */
  sweepLater;
  #byPlan = /* @__PURE__ */ new WeakMap();
  /** The last plan, which most decisions have again. A fixed window takes 0.21 µs with this and its tables, 0.25 µs without. */
  #lastPlan;
  #lastTables = [];
  constructor(bounds, sweepLater) {
    this.bounds = bounds;
    this.#tables = new Tables(this.usage, bounds);
    this.sweepLater = sweepLater;
  }
  get size() {
    const { size } = this.#tables;
    return size === 0 ? 0 : size + this.usage.keys;
  }
  /** States that were evicted so far, for lack of room. */
  get evicted() {
    return this.#tables.evicted;
  }
  /** The tables of a plan for the kinds that it names. */
  tablesFor(plan) {
    if (plan === this.#lastPlan) return this.#lastTables;
    let tables = this.#byPlan.get(plan);
    if (!tables) {
      tables = plan.cells.map((cell) => this.#tableOf(plan, cell, plan.starts[cell.identity]));
      this.#byPlan.set(plan, tables);
    }
    this.#lastPlan = plan;
    this.#lastTables = tables;
    return tables;
  }
  /** The locations for a request of any kinds. */
  placesOf(request) {
    const { plan, identities } = request;
    const values = valuesOf(request);
    const own = this.tablesFor(plan);
    if (values) return { tables: own, values };
    const tables = plan.cells.map((cell, c) => {
      const text = identities[cell.identity];
      const start = text.slice(0, afterKind(text));
      return start === plan.starts[cell.identity] ? own[c] : this.#tableOf(plan, cell, start);
    });
    return { tables, values: identities.map((text) => text.slice(afterKind(text))) };
  }
  /** Each kind has a separate table, so that equal values of two kinds never meet. */
  #tableOf({ policy }, cell, start) {
    this.sweepLater();
    return this.#tables.find(`${policy}:${cell.id}
${start}`, cell);
  }
  /** Takes a table in which a decision has made or dropped a state. */
  resized(table, now) {
    table.sweep(now, SWEPT_PER_INSERT);
    this.sweepLater();
  }
  get areTooMany() {
    return this.#tables.areTooMany;
  }
  /** Evicts until there is room, within the bound of `Tables` per decision. */
  makeRoom(now, decided2) {
    if (this.#tables.makeRoom(now, decided2)) this.#forgetPlans();
  }
  sweep(now, max) {
    if (this.#tables.sweep(now, max)) this.#forgetPlans();
    return max;
  }
  /** Forgets a value of a kind. */
  forget(start, value) {
    this.#tables.forget(start, value);
  }
  /** Makes plans find their tables again, each the same one. */
  #forgetPlans() {
    this.#byPlan = /* @__PURE__ */ new WeakMap();
    this.#lastPlan = void 0;
  }
};
function valuesOf({
  plan: { starts },
  identities,
  values
}) {
  if (values === void 0) return void 0;
  for (let i = 0; i < values.length; i++) {
    const start = starts[i];
    if (identities[i].length !== start.length + values[i].length) return void 0;
  }
  return values;
}

// packages/core/src/kernels/strikes.ts
var ENTRY = 2;
function struck(record, now, weight, jitterMs, { after, withinMs, forgetAfterMs, rungs }) {
  const before = record?.strikes ?? [];
  const last = before.length > 0 ? before[before.length - ENTRY] : now;
  const at = instant(last, now, withinMs);
  let rung = record?.rung ?? 0;
  if (record !== void 0 && at - record.since >= forgetAfterMs) rung = 0;
  const strikes = [];
  let count2 = weight;
  for (let i = 0; i < before.length; i += ENTRY) {
    const since = Math.min(before[i], at);
    if (at - since >= withinMs) continue;
    strikes.push(since, before[i + 1]);
    count2 += before[i + 1];
  }
  if (count2 < after) {
    strikes.push(at, weight);
    return { record: { rung, since: Math.max(at, rung > 0 ? record?.since ?? 0 : 0), strikes }, ban: void 0 };
  }
  rung = Math.min(rung + 1, rungs.length);
  const forMs = rungs[rung - 1] + jitterMs;
  return { record: { rung, since: now + forMs, strikes: [] }, ban: { rung, strikes: count2, forMs } };
}
function forgiven(record) {
  return record.rung > 0 ? { ...record, strikes: [] } : void 0;
}
function endOf({ rung, since, strikes }, { withinMs, forgetAfterMs }) {
  const lapse = strikes.length > 0 ? strikes[strikes.length - ENTRY] + withinMs : 0;
  return rung > 0 ? Math.max(since + forgetAfterMs, lapse) : lapse;
}

// packages/core/src/memory/strikes.ts
var RECORD_BYTES = 136;
var SAMPLE3 = 8;
var StrikeRecords = class extends ExpiringValues {
  #maxBytes;
  /** Beyond `maxBytes`, records are evicted. */
  constructor(usage, graceMs, maxBytes) {
    super(usage, graceMs);
    this.#maxBytes = maxBytes;
  }
  endOf({ record, rules }) {
    return endOf(record, rules);
  }
  bytesOf(key, { record }) {
    return RECORD_BYTES + rowBytes(1, key) + 8 * record.strikes.length;
  }
  /** Records a strike, and returns the ban that it starts, if any. */
  strike(key, now, weight, jitterMs, rules) {
    const before = this.byKey.get(key);
    const { record, ban } = struck(before?.record, now, weight, jitterMs, rules);
    this.put(key, before, { record, rules });
    this.#makeRoom(now);
    return ban;
  }
  /** Records the rung of a ban that was made elsewhere, unless a higher one is known. */
  keepRung(key, { rung, until, forgetAfterMs }, now) {
    const before = this.byKey.get(key);
    if (before && before.record.rung >= rung) return;
    const record = { rung, since: until, strikes: [] };
    const rules = { after: 1, withinMs: 1, forgetAfterMs, rungs: [] };
    this.put(key, before, { record, rules });
    this.#makeRoom(now);
  }
  /** Forgets the strikes; the rung stays. */
  forgive(key) {
    const before = this.byKey.get(key);
    if (!before) return;
    const record = forgiven(before.record);
    if (record) this.put(key, before, { record, rules: before.rules });
    else this.forget(key);
  }
  /** Forgets the strikes and the rung. */
  forget(key) {
    const stored = this.byKey.get(key);
    if (stored) this.remove(key, stored);
  }
  #makeRoom(now) {
    while (this.usage.bytes > this.#maxBytes && this.size > 1) this.#evict(now);
  }
  /** Evicts the least useful of the next few records: the lowest rung, and among equals the fewest strikes. */
  #evict(now) {
    let victim = "";
    let least = Number.POSITIVE_INFINITY;
    for (let n = Math.min(SAMPLE3, this.size); n > 0; n--) {
      const stored = this.visit();
      const { record, rules } = stored;
      const rank = this.endOf(stored) <= now ? -1 : record.rung * rules.after + record.strikes.length;
      if (rank < least) {
        least = rank;
        victim = this.byKey.keyAt(this.next);
      }
      this.next++;
    }
    this.forget(victim);
  }
};

// packages/core/src/memory/bans.ts
var BLOCKS_SHARE = 1 / 2;
var LEAST_BANS_SHARE = 1 / 16;
var STRIKES_SHARE = 1 / 4;
var SWEPT_WHEN_FULL = 64;
var LOOKED_AT_ONCE = 2e3;
var Bans = class {
  blocks;
  #strikes;
  #states;
  #listeners;
  /** Whether to look for bans of every policy: only once there was one. */
  #hasEveryPolicy = false;
  constructor(states, listeners) {
    const { graceMs, maxBytes } = states.bounds;
    const room = { blocks: maxBytes * BLOCKS_SHARE, leastBans: maxBytes * LEAST_BANS_SHARE };
    this.blocks = new Blocks(new Usage(states.usage), graceMs, room, (ban) => listeners.evicted(ban));
    this.#strikes = new StrikeRecords(new Usage(states.usage), graceMs, maxBytes * STRIKES_SHARE);
    this.#states = states;
    this.#listeners = listeners;
  }
  get size() {
    return this.blocks.size + this.#strikes.size;
  }
  sweep(now, max) {
    return this.blocks.sweep(now, max / 2) + this.#strikes.sweep(now, max / 4);
  }
  /** The block or ban in force that ends last. */
  holding({ policy, banningPolicy }, identities, now) {
    const { blocks } = this;
    let last;
    const look = (block) => {
      if (block && block.until > (last?.until ?? now)) last = block;
    };
    for (const identity of identities) {
      look(blocks.find(policy, identity));
      if (banningPolicy !== void 0) look(blocks.find(banningPolicy, identity));
      if (this.#hasEveryPolicy) look(blocks.find(EVERY_POLICY, identity));
      if (!blocks.hasRanges) continue;
      blocks.ofRanges([policy, banningPolicy ?? policy, EVERY_POLICY], identity).forEach(look);
    }
    return last;
  }
  /** Counts a strike toward a ban, unless a block or ban is in force. */
  strike(terms, identity, strike, now) {
    const { policy, scope } = terms;
    const inForce = this.holding({ policy, banningPolicy: scope }, [identity], now);
    if (strike.weight === 0) this.forgive(scope, identity);
    if (!inForce && strike.weight > 0) return { now, block: this.struck(terms, identity, strike, now) };
    return { now, block: inForce && reportOf(inForce, now) };
  }
  /** Counts a strike. Returns the ban that it starts, if any. */
  struck(terms, identity, { weight, jitterMs, reason }, now) {
    const { scope, forgetAfterMs } = terms;
    this.#strikes.sweep(now, SWEPT_PER_INSERT);
    const start = this.#strikes.strike(keyOf(scope, identity), now, weight, jitterMs, terms);
    this.#states.sweepLater();
    if (this.#states.areTooMany) this.#states.makeRoom(now, []);
    if (!start) return void 0;
    const { rung, strikes, forMs } = start;
    const ban = this.#blockOf(scope, identity, now, { forMs, reason, ban: { rung, strikes, forgetAfterMs } });
    this.#set(scope, identity, ban, now);
    return { ...reportOf(ban, now), hasBegun: true };
  }
  /** Forgets strikes; the rung stays. */
  forgive(scope, identity) {
    this.#strikes.forgive(keyOf(scope, identity));
  }
  /** @throws SluiceError `STORE_FULL` */
  block(policy, identity, forMs, reason, now) {
    this.#add(policy, identity, this.#blockOf(policy, identity, now, { forMs, reason }), now);
  }
  /**
   * Adds a block or ban that was made elsewhere: the next ban is of the next rung.
   *
   * @throws SluiceError `STORE_FULL`
   */
  keep({ policy, identity, block }, now) {
    this.#add(policy, identity, block, now);
    this.#keepRung(policy, identity, block, now);
  }
  /** Adds the entries of a file. Returns the number of those without room. */
  restore(entries, now) {
    const left = entries.filter(({ policy = EVERY_POLICY, kind, value, ...block }) => {
      this.#keepRung(policy, startOf2(kind) + value, block, now);
      return !this.#set(policy, startOf2(kind) + value, block, now);
    });
    return left.length;
  }
  unblock(policy, identity) {
    this.#listeners.changed();
    this.blocks.delete(policy, identity);
    this.#strikes.forget(keyOf(policy, identity));
  }
  /** Ends all blocks and bans. */
  clear() {
    for (let index = this.blocks.size - 1; index >= 0; index--) {
      const { policy, identity } = this.blocks.at(index);
      this.unblock(policy, identity);
    }
  }
  /** Forgets an identity under every policy. */
  async forget(identity) {
    const end = `
${identity}`;
    for (const keys of [() => this.blocks.keys(), () => this.#strikes.keys()]) {
      let looked = 0;
      for (const key of keys()) {
        if (key.endsWith(end)) this.unblock(key.slice(0, -end.length), identity);
        if (++looked % LOOKED_AT_ONCE === 0) await setImmediate2();
      }
    }
  }
  /** A block that begins at `now`. */
  #blockOf(policy, identity, now, { forMs, ...more }) {
    const times = (this.blocks.find(policy, identity)?.times ?? 0) + 1;
    return { since: now, until: now + forMs, times, ...more };
  }
  #add(policy, identity, block, now) {
    if (this.#set(policy, identity, block, now)) return;
    const { maxBytes } = this.#states.bounds;
    throw new SluiceError(
      "STORE_FULL",
      `memoryStore: maxBytes: no room for one more block: ${this.blocks.sizeByHand} take half of ${maxBytes} bytes`
    );
  }
  /** Sets a block and returns whether there was room: for a ban there always is. */
  #set(policy, identity, block, now) {
    if (policy === EVERY_POLICY) this.#hasEveryPolicy = true;
    this.blocks.sweep(now, SWEPT_PER_INSERT);
    if (!this.blocks.set(policy, identity, block)) {
      this.blocks.sweep(now, SWEPT_WHEN_FULL);
      if (!this.blocks.set(policy, identity, block)) return false;
    }
    if (this.#states.areTooMany) this.#states.makeRoom(now, []);
    this.#states.sweepLater();
    this.#listeners.changed();
    return true;
  }
  #keepRung(policy, identity, { until, ban }, now) {
    if (ban?.forgetAfterMs === void 0) return;
    const { rung, forgetAfterMs } = ban;
    this.#strikes.keepRung(keyOf(policy, identity), { rung, until, forgetAfterMs }, now);
    this.#states.sweepLater();
  }
};
function reportOf({ until, reason, ban }, now) {
  const remainingMs = until - now;
  return ban ? { reason, remainingMs, ban: { rung: ban.rung, strikes: ban.strikes } } : { reason, remainingMs };
}

// packages/core/src/memory/clock.ts
var REAL = performance;
var ORIGIN = REAL.timeOrigin;
function monotonicNow() {
  return Math.floor(ORIGIN + REAL.now());
}
function monotonicClock() {
  const clock = performance;
  return clock === REAL ? monotonicNow : () => Math.floor(ORIGIN + clock.now());
}

// packages/core/src/util/charge-id.ts
import { randomFillSync } from "node:crypto";
var BYTES = 16;
var random = Buffer.alloc(256 * BYTES);
var used = random.length;
function chargeId() {
  if (used === random.length) {
    randomFillSync(random);
    used = 0;
  }
  used += BYTES;
  return random.toString("base64url", used - BYTES, used);
}

// packages/core/src/util/resets.ts
var MAX_RESETS = 1e4;
var Resets = class {
  #numbers = /* @__PURE__ */ new Map();
  #count = 0;
  #forgottenUpTo = 0;
  /** The number of resets. Charges carry the number at their decision. */
  get count() {
    return this.#count;
  }
  note(tier, identities) {
    this.#count++;
    for (const identity of identities) {
      const name = nameOf(tier, identity);
      this.#numbers.delete(name);
      this.#numbers.set(name, this.#count);
    }
    for (const [name, number] of this.#numbers) {
      if (this.#numbers.size <= MAX_RESETS) break;
      this.#numbers.delete(name);
      this.#forgottenUpTo = number;
    }
  }
  /** Whether a key was reset after the first `count` resets. */
  wasResetAfter(count2, tier, identity) {
    return count2 < this.#count && (count2 < this.#forgottenUpTo || (this.#numbers.get(nameOf(tier, identity)) ?? 0) > count2);
  }
};
function nameOf(tier, identity) {
  return tier === void 0 ? identity : `${tier}
${identity}`;
}

// packages/core/src/memory/kept-records.ts
var SHARE = 1 / 4;
var RECORD_BYTES2 = 560;
var CELL_BYTES = 72;
var SAMPLE4 = 8;
var KeptRecords = class extends ExpiringValues {
  #states;
  #maxBytes;
  #resets = new Resets();
  constructor(states) {
    super(new Usage(states.usage), states.bounds.graceMs);
    this.#states = states;
    this.#maxBytes = states.bounds.maxBytes * SHARE;
  }
  endOf({ until }) {
    return until;
  }
  bytesOf(key, { charge: { request } }) {
    const texts = request.identities.reduce((bytes, identity) => bytes + textBytes(identity), 0);
    return RECORD_BYTES2 + CELL_BYTES * request.costs.length + rowBytes(1, key) + texts;
  }
  /** Keeps an admitted charge, and returns its id. */
  keep(request, result) {
    const { forMs, id = chargeId() } = request.keep;
    const { now } = result;
    this.sweep(now, SWEPT_PER_INSERT);
    this.put(keyOf2(request.plan.policy, id), void 0, {
      charge: { request: { ...request, keep: { forMs, id } }, result },
      taken: request.costs.map(() => false),
      resets: this.#resets.count,
      until: now + forMs
    });
    while (this.usage.bytes > this.#maxBytes && this.size > 1) this.#evict();
    this.#states.sweepLater();
    return id;
  }
  find(policy, id) {
    return this.byKey.get(keyOf2(policy, id))?.charge;
  }
  /** Takes the cells that a change names. Returns those that were not taken before, which are to be changed. */
  take({ op, plan, identities, keep }, now) {
    const { id = "", takes, forMs } = keep;
    const taken = plan.cells.map(() => false);
    const record = this.byKey.get(keyOf2(plan.policy, id));
    if (!record || record.until <= now) return { outcome: "unknown", taken };
    let outcome = "unknown";
    for (const [c, { identity }] of plan.cells.entries()) {
      const isNamed = takes?.[c] ?? true;
      if (!isNamed || this.#isReset(record, plan.policy, identities[identity])) continue;
      if (record.taken[c]) {
        if (outcome === "unknown") outcome = "done before";
        continue;
      }
      outcome = "done";
      taken[c] = true;
      if (op !== RENEW) record.taken[c] = true;
    }
    if (op === RENEW && outcome === "done") record.until = Math.max(record.until, now + forMs);
    return { outcome, taken };
  }
  /** Makes the ids of charges so far unknown, as far as they are on these identities. */
  reset(policy, identities) {
    this.#resets.note(policy, identities);
  }
  #isReset({ resets }, policy, identity) {
    return this.#resets.wasResetAfter(resets, policy, identity) || this.#resets.wasResetAfter(resets, void 0, identity);
  }
  /** Forgets the one of the next few records that ends soonest. */
  #evict() {
    let victim = "";
    let soonest = Number.POSITIVE_INFINITY;
    for (let n = Math.min(SAMPLE4, this.size); n > 0; n--) {
      const { until } = this.visit();
      if (until < soonest) {
        soonest = until;
        victim = this.byKey.keyAt(this.next);
      }
      this.next++;
    }
    this.remove(victim, this.byKey.get(victim));
  }
};
function keyOf2(policy, id) {
  return `${policy}
${id}`;
}

// packages/core/src/memory/memory-blocks.ts
var MAX_VISITS = 1e4;
var MemoryBlocks = class {
  #now;
  #bans;
  #listeners;
  constructor(now, bans, listeners) {
    this.#now = now;
    this.#bans = bans;
    this.#listeners = listeners;
  }
  get known() {
    return this.#bans().blocks.size;
  }
  /** Blocks from the last to the first: the last replaces one that is removed meanwhile, so none is skipped. */
  async list(query) {
    const { cursor, max, matches } = checkedQuery(query);
    const { blocks } = this.#bans();
    const now = this.#now();
    let next = Math.min(cursor === void 0 ? blocks.size : positionOf(cursor), blocks.size);
    const end = Math.max(0, next - MAX_VISITS);
    const entries = [];
    while (next > end && entries.length < max) {
      const found = blocks.at(--next);
      if (found.block.until <= now) continue;
      const entry = entryOf(found);
      if (matches(entry)) entries.push(entry);
    }
    return next > 0 ? { entries, cursor: String(next) } : { entries };
  }
  async get(identity, scope) {
    const place = placeOf("blocks.get", identity, checkedScope("blocks.get", scope));
    const block = this.#bans().blocks.find(place.policy, place.identity);
    return block && block.until > this.#now() ? entryOf({ ...place, block }) : void 0;
  }
  async add(identity, options) {
    const { forMs, reason } = checkedAdd("blocks.add", options);
    const place = placeOf("blocks.add", identity, options);
    this.#bans().block(place.policy, place.identity, forMs, reason, this.#now());
    emitBlock(this.#listeners, place, forMs, reason);
  }
  async remove(identity, scope) {
    const place = placeOf("blocks.remove", identity, checkedScope("blocks.remove", scope));
    this.#bans().unblock(place.policy, place.identity);
    emitUnblock(this.#listeners, place);
  }
  async removeAll() {
    this.#bans().clear();
  }
  export() {
    return entriesOf(this, 1e3);
  }
  async import(entries) {
    let added = 0;
    let index = 0;
    for await (const given of entries) {
      const { policy = EVERY_POLICY, kind, value, ...block } = checkedEntry(index++, given);
      const identity = startOf2(kind) + value;
      const known2 = this.#bans().blocks.find(policy, identity);
      if (block.until <= this.#now() || known2 && known2.since >= block.since) continue;
      this.#bans().keep({ policy, identity, block }, this.#now());
      added++;
    }
    return added;
  }
};
function entryOf({ policy, identity, block: { reason, since, until, times, ban } }) {
  const { kind, value } = textValue(identity);
  return { ...policy !== EVERY_POLICY && { policy }, kind, value, reason, since, until, times, ...ban && { ban } };
}
function positionOf(cursor) {
  if (/^\d{1,9}$/.test(cursor)) return Number(cursor);
  return invalidPolicy("blocks.list", "cursor", "the cursor of the page before", cursor);
}

// packages/core/src/memory/memory-lists.ts
var MAX_VISITS2 = 1e4;
var MemoryLists = class {
  named;
  now;
  #changed;
  constructor(now, changed) {
    this.named = new NamedLists(now);
    this.now = now;
    this.#changed = changed;
  }
  async loaded() {
  }
  async add(list, row) {
    this.named.set({ list, ...row });
    this.#changed();
  }
  async remove(list, identities) {
    for (const identity of identities) this.named.delete(list, identity);
    this.#changed();
  }
  /** Removes an identity from every list. */
  forget(identity) {
    for (const entry of [...this.named]) if (entry.identity === identity) this.named.delete(entry.list, identity);
  }
  async get(list, identity) {
    return this.named.get(list, identity);
  }
  /** A page ends with the number of its last entry: changed entries get a new one, so none is skipped. */
  async page(list, { where, cursor, max, matches }) {
    if (cursor !== void 0 && !/^\d{1,15}$/.test(cursor))
      invalidPolicy(where, "cursor", "the cursor of the page before", cursor);
    const entries = [];
    let visits = 0;
    let last = Number(cursor ?? 0);
    for (const [number, row] of this.named.of(list).from(last)) {
      if (entries.length === max || visits++ === MAX_VISITS2) return { entries, cursor: String(last) };
      last = number;
      if (row.until > this.now() && matches(row)) entries.push(row);
    }
    return { entries };
  }
  clear() {
    for (const { list, identity } of [...this.named]) this.named.delete(list, identity);
  }
  /** All entries in force. */
  *[Symbol.iterator]() {
    for (const entry of this.named) if (entry.until > this.now()) yield entry;
  }
};

// packages/core/src/memory/memory-refusals.ts
var NOTHING = { counts: [], refusals: 0, error: 0 };
var MemoryRefusals = class {
  now;
  /** The slices by the name of the policy and the window, and by the number of the slice. */
  #byName = /* @__PURE__ */ new Map();
  constructor(now) {
    this.now = now;
  }
  async add({ policy, counts, refusals: refusals2, error }) {
    for (const [window, ms] of Object.entries(WINDOWS)) {
      const slice = this.#sliceOf(`${window} ${policy}`, Math.floor(this.now() * SLICES / ms));
      for (const [identity, count2] of counts) slice.counts.set(identity, (slice.counts.get(identity) ?? 0) + count2);
      slice.refusals += refusals2;
      slice.error += error + trim(slice.counts);
    }
  }
  async read(policy, window, number) {
    return this.#byName.get(`${window} ${policy}`)?.get(number) ?? NOTHING;
  }
  forget(identity) {
    for (const slices of this.#byName.values()) for (const { counts } of slices.values()) counts.delete(identity);
  }
  clear() {
    this.#byName.clear();
  }
  #sliceOf(name, number) {
    const slices = this.#byName.get(name) ?? /* @__PURE__ */ new Map();
    this.#byName.set(name, slices);
    let slice = slices.get(number);
    if (!slice) {
      slice = { counts: /* @__PURE__ */ new Map(), refusals: 0, error: 0 };
      slices.set(number, slice);
      for (const other of [...slices.keys()]) if (other < number - SLICES) slices.delete(other);
    }
    return slice;
  }
};
function trim(counts) {
  if (counts.size <= 2 * KEPT) return 0;
  const lost = [...counts.values()].sort((one, other) => other - one)[KEPT];
  for (const [identity, count2] of [...counts]) {
    if (count2 > lost) counts.set(identity, count2 - lost);
    else counts.delete(identity);
  }
  return lost;
}

// packages/core/src/memory/persisted-blocks.ts
import { readdirSync, readFileSync, renameSync, unlinkSync } from "node:fs";
import { basename, dirname, join } from "node:path";

// packages/core/src/util/replace-file.ts
import { randomBytes } from "node:crypto";
import { rename, unlink, writeFile } from "node:fs/promises";
async function replaceFile(file, content, options = {}) {
  const beside = `${file}.${process.pid}.${randomBytes(8).toString("hex")}.tmp`;
  try {
    await writeFile(beside, content, { flag: "wx", mode: 384, flush: true, ...options });
    await rename(beside, file);
  } catch (error) {
    if (error.code !== "EEXIST") await unlink(beside).catch(() => {
    });
    throw error;
  }
}

// packages/core/src/memory/persisted-blocks.ts
var HEADER = '{"sluice":"blocks","version":1}';
var WRITE_AFTER_MS = 1e3;
var CHUNK2 = 65536;
var NOTHING2 = { blocks: [], listed: [] };
var PersistedBlocks = class {
  #file;
  #entries;
  #listed;
  #warnings;
  #timer;
  #isChanged = false;
  #writing = Promise.resolve();
  #isWarned = false;
  /** @throws SluiceError `INVALID_POLICY` for an invalid path */
  constructor(file, entries, listed3, warnings) {
    if (typeof file !== "string" || file === "") invalidPolicy("memoryStore", "persist", "the path of a file", file);
    this.#file = file;
    this.#entries = entries;
    this.#listed = listed3;
    this.#warnings = warnings;
  }
  /**
   * The contents of the file; empty where there is none. A damaged file is put aside with a warning of the process. Files that
   * other processes left beside it when they ended during a write are removed.
   *
   * @throws SluiceError `INVALID_POLICY` for a file that cannot be read
   */
  read() {
    removeLeftOver(this.#file);
    let text;
    try {
      text = readFileSync(this.#file, "utf8");
    } catch (error) {
      if (error.code === "ENOENT") return NOTHING2;
      throw new SluiceError("INVALID_POLICY", `memoryStore: persist: ${error.message}`, { cause: error });
    }
    try {
      return entriesIn(text);
    } catch (error) {
      const aside = `${this.#file}.damaged`;
      renameSync(this.#file, aside);
      this.warn(`${error.message}: a new file was begun; the old content is in ${aside}`);
      return NOTHING2;
    }
  }
  changed() {
    this.#isChanged = true;
    this.#timer ??= setTimeout(() => this.#writeNow(), WRITE_AFTER_MS).unref();
  }
  /** Resolves once all changes are written, or are known to have failed. */
  async written() {
    if (this.#isChanged) this.#writeNow();
    await this.#writing;
  }
  #writeNow() {
    clearTimeout(this.#timer);
    this.#timer = void 0;
    this.#isChanged = false;
    this.#writing = this.#writing.then(() => replaceFile(this.#file, this.#chunks())).catch((error) => this.warn(error.message));
  }
  /** The text of the file, in chunks of many lines. */
  async *#chunks() {
    let text = `${HEADER}
`;
    for await (const entry of this.#all()) {
      text += `${JSON.stringify(entry)}
`;
      if (text.length < CHUNK2) continue;
      yield text;
      text = "";
    }
    yield text;
  }
  async *#all() {
    yield* this.#entries();
    yield* this.#listed();
  }
  /** Warns once: repeated failures would fill a log. */
  warn(why) {
    if (this.#isWarned) return;
    this.#isWarned = true;
    this.#warnings.emit("SLUICE_PERSIST_FAILED", `memoryStore: persist: ${this.#file}: ${why}`);
  }
};
function removeLeftOver(file) {
  const folder = dirname(file);
  const start = `${basename(file)}.`;
  try {
    for (const name of readdirSync(folder)) {
      const [, pid] = name.startsWith(start) ? /^(\d+)\.[0-9a-f]{16}\.tmp$/.exec(name.slice(start.length)) ?? [] : [];
      if (pid !== void 0 && hasEnded(Number(pid))) unlinkSync(join(folder, name));
    }
  } catch {
  }
}
function hasEnded(pid) {
  if (pid === process.pid) return true;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return error.code === "ESRCH";
  }
}
function entriesIn(text) {
  const [header, ...lines] = text.split("\n");
  if (header !== HEADER) throw new Error(`line 1: expected ${HEADER}`);
  if (lines.pop() !== "") throw new Error(`line ${lines.length + 2}: expected a whole line`);
  const blocks = [];
  const listed3 = [];
  lines.forEach((line, i) => {
    try {
      const entry = JSON.parse(line);
      if (Object.hasOwn(entry, "list")) listed3.push(checkedNamedEntry(entry));
      else blocks.push(checkedEntry(i, entry));
    } catch (error) {
      throw new Error(`line ${i + 2}: ${error.message}`);
    }
  });
  return { blocks, listed: listed3 };
}

// packages/core/src/memory/sweeper.ts
var SWEPT_PER_TICK = 2e3;
var SWEEP_EVERY_MS = 100;
var SWEEP_SOON_MS = 10;
var Sweeper = class {
  #now;
  #swept;
  #timer;
  /** `swept`: each collection leaves its unused visits to the next ones. */
  constructor(now, swept) {
    this.#now = now;
    this.#swept = swept;
  }
  later(afterMs = SWEEP_EVERY_MS) {
    this.#timer ??= setTimeout(() => this.#sweep(), afterMs).unref();
  }
  stop() {
    clearTimeout(this.#timer);
    this.#timer = void 0;
  }
  /** Visits a bounded number of entries, so that it does not delay requests. */
  #sweep() {
    this.#timer = void 0;
    const now = this.#now();
    const before = this.#size;
    let left = SWEPT_PER_TICK;
    for (const swept of this.#swept) left -= swept().sweep(now, left);
    const size = this.#size;
    if (size > 0) this.later(before - size > SWEPT_PER_TICK / 4 ? SWEEP_SOON_MS : SWEEP_EVERY_MS);
  }
  get #size() {
    return this.#swept.reduce((sum, swept) => sum + swept().size, 0);
  }
};

// packages/core/src/memory/store.ts
var OPTIONS = ["clock", "maxKeys", "maxBytes", "persist", "offenders", "allow", "deny", "warnings"];
var NO_SERVER = "it is for redisStore, as a memory store has no server; leave it out here";
var OF_REDIS = {
  prefix: "it is for redisStore, as a memory store does not share its keys and policy names separate them; leave it out here",
  timeout: NO_SERVER,
  connectTimeoutMs: NO_SERVER,
  batch: NO_SERVER,
  denyCache: NO_SERVER,
  undeclaredKeys: NO_SERVER,
  onStateChange: NO_SERVER
};
var MAX_KEYS = 6e7;
var LEAST_BYTES = 1e6;
var STRANGE_CLOCK_GRACE_MS = 36e5;
function memoryStore(options = {}) {
  return new MemoryStore(options);
}
var decided = false;
function hasDecided() {
  return decided;
}
var MemoryStore = class {
  lists;
  blocks;
  noteRefusal;
  #listeners = new Listeners("memoryStore", STORE_EVENTS);
  #since = Date.now();
  #clock;
  #bounds;
  #lists = new MemoryLists(
    () => this.#clock(),
    () => this.#persisted?.changed()
  );
  #refusalSlices = new MemoryRefusals(() => this.#clock());
  #refusals;
  #persisted;
  #warnings;
  #isWarnedOfBans = false;
  #sweeper = new Sweeper(() => this.#clock(), [() => this.#bans, () => this.#kept, () => this.#states]);
  #states;
  #bans;
  #kept;
  constructor(options) {
    knownOptions("memoryStore", options, OPTIONS, OF_REDIS);
    this.lists = storeLists("memoryStore", options);
    this.#clock = givenClock("memoryStore", options.clock) ?? monotonicClock();
    this.#refusals = refusalLog("memoryStore", options.offenders, this.#refusalSlices);
    this.noteRefusal = this.#refusals?.note;
    this.#bounds = boundsOf(options);
    this.#states = this.#makeStates();
    this.#bans = this.#makeBans();
    this.#kept = new KeptRecords(this.#states);
    this.blocks = new MemoryBlocks(this.#clock, () => this.#bans, this.#listeners);
    this.#warnings = new Warnings("memoryStore", STORE_WARNINGS, options.warnings, this.#listeners);
    if (options.persist !== void 0) this.#persisted = this.#persistedIn(options.persist);
  }
  #makeStates() {
    return new States(this.#bounds, () => this.#sweeper.later());
  }
  #makeBans() {
    return new Bans(this.#states, {
      changed: () => this.#persisted?.changed(),
      evicted: (ban) => this.#evicted(ban)
    });
  }
  /** Adds the entries of the file, as far as there is room. */
  #persistedIn(file) {
    const persisted = new PersistedBlocks(
      file,
      () => this.blocks.export(),
      () => this.#lists,
      this.#warnings
    );
    const now = this.#clock();
    const { blocks, listed: listed3 } = persisted.read();
    for (const entry of listed3) if (entry.until > now) this.#lists.named.set(entry);
    const entries = blocks.filter(({ until }) => until > now);
    const left = this.#bans.restore(entries, now);
    if (left > 0) persisted.warn(`maxBytes has no room for ${left} of ${entries.length} blocks and bans`);
    return persisted;
  }
  /** `now`: replaces the clock's time, to charge a use that is known from an earlier instant. */
  decide(request, now = this.#clock()) {
    const { op, plan } = request;
    decided = true;
    if (request.keep) return this.#decideKept(request, now);
    if (op !== CONSUME && op !== PEEK && op !== CHARGE) return this.#change(request, now);
    const block = this.#bans.blocks.size > 0 ? this.#bans.holding(plan, request.identities, now) : void 0;
    if (block) return { now, allowed: false, values: [], offset: 0, block: reportOf(block, now) };
    const values = valuesOf(request);
    const tables = this.#states.tablesFor(plan);
    const result = values === void 0 ? this.#decideAll(request, this.#states.placesOf(request), now) : tables.length === 1 ? this.#decideOne(request, tables[0], values[0], now) : this.#decideAll(request, { tables, values }, now);
    return request.strike === void 0 || result.allowed ? result : this.#strikeRefused(request, result);
  }
  /** Decides, and keeps an admitted charge; or changes a kept one, as far as its record says. */
  #decideKept({ keep, ...request }, now) {
    const { op } = request;
    if (op === CONSUME || op === PEEK || op === CHARGE) {
      const result = this.decide(request, now);
      if (!result.allowed || op === PEEK) return result;
      return { ...result, id: this.#kept.keep({ ...request, keep }, result) };
    }
    const { outcome, taken } = this.#kept.take({ ...request, keep }, now);
    const costs = request.costs.map((cost, c) => taken[c] ? cost : 0);
    return { outcome, ...this.#change({ ...request, costs }, now) };
  }
  keptCharge(policy, id) {
    const charge2 = this.#kept.find(policy, id);
    return charge2 ? [charge2] : [];
  }
  /** A refusal by a limit is a strike. If that starts a ban, the ban becomes the reason. */
  #strikeRefused(request, result) {
    const terms = request.plan.ban;
    if (!terms || request.op === PEEK || !isRefusedForNow(request.plan, result)) return result;
    const identity = request.identities[terms.identity];
    const { now } = result;
    const strike = { weight: 1, jitterMs: request.strike, reason: "" };
    const block = this.#bans.struck(terms, identity, strike, now);
    return block ? { now, allowed: false, values: [], offset: 0, block } : result;
  }
  strike(terms, identity, strike) {
    return this.#bans.strike(terms, identity, strike, this.#clock());
  }
  /** `#decideAll` for one cell: nearly every decision, so it does as little as possible. */
  #decideOne({ op, plan, costs, needs = costs, permitId }, table, value, now) {
    const cost = costs[0];
    const wait = table.look(value, now, needs[0]);
    const allowed = wait === 0;
    const { hasState } = table;
    if (allowed && op !== PEEK) {
      if (cost !== 0) table.charge(cost, permitId);
    } else if (op === CHARGE && wait > 0) chargeRefused(plan.cells[0], table, cost, permitId);
    else if (op === CONSUME) table.heal();
    const values = plan.reports === 1 ? [0, 0, 0, 0] : new Array(STRIDE * plan.reports);
    table.report(values, 0, allowed);
    if (wait > 0 && op !== PEEK) table.noteRefusal();
    const { refunded } = table;
    if (table.hasState !== hasState) this.#states.resized(table, now);
    if (this.#states.areTooMany) this.#states.makeRoom(now, [table]);
    return refunded === 0 ? { now, allowed, values, offset: 0 } : { now, allowed, values, offset: 0, refunded: [refunded] };
  }
  #decideAll({ op, plan, costs, needs = costs, permitId }, { tables, values: identities }, now) {
    const { cells } = plan;
    let allowed = true;
    let possible = true;
    for (let i = 0; i < tables.length; i++) {
      const identity = identities[cells[i].identity];
      const wait = tables[i].look(identity, now, needs[i]);
      if (wait !== 0) allowed = false;
      if (wait < 0) possible = false;
    }
    const values = new Array(STRIDE * plan.reports);
    let refunded;
    for (let i = 0, at = 0; i < tables.length; i++) {
      const table = tables[i];
      const cost = costs[i];
      const { hasState } = table;
      if (allowed && op !== PEEK) {
        if (cost !== 0) table.charge(cost, permitId);
      } else if (op === CHARGE && possible) chargeRefused(cells[i], table, cost, permitId);
      else if (op === CONSUME) table.heal();
      const from = at;
      at = table.report(values, from, allowed);
      if (!allowed && op !== PEEK && hasToWait(values, from, at)) table.noteRefusal();
      if (table.refunded !== 0) {
        refunded ??= tables.map(() => 0);
        refunded[i] = table.refunded;
      }
      if (table.hasState !== hasState) this.#states.resized(table, now);
    }
    if (this.#states.areTooMany) this.#states.makeRoom(now, tables);
    return refunded ? { now, allowed, values, offset: 0, refunded } : { now, allowed, values, offset: 0 };
  }
  reset(plan, identities) {
    const { tables, values } = this.#states.placesOf({ plan, identities });
    for (const [i, table] of tables.entries()) table.forget(values[plan.cells[i].identity]);
    if (plan.keeps) this.#kept.reset(plan.policy, identities);
    const { ban } = plan;
    if (ban) this.#bans.forgive(ban.scope, identities[ban.identity]);
  }
  block(policy, identity, forMs, reason) {
    this.#bans.block(policy, identity, forMs, reason, this.#clock());
  }
  unblock(policy, identity) {
    this.#bans.unblock(policy, identity);
  }
  /** Takes a ban that has ended before its time. Its rung stays, as far as there is room. */
  #evicted({ policy, identity, block: { until, ban } }) {
    const remainingMs = until - this.#clock();
    if (remainingMs <= 0) return;
    emitBanEvicted(this.#listeners, { policy, identity }, ban?.rung, remainingMs);
    if (this.#isWarnedOfBans) return;
    this.#isWarnedOfBans = true;
    const message = "no room for all bans: those of the lowest rung that end soonest end before their time";
    this.#warnings.emit("SLUICE_BANS_EVICTED", `memoryStore: maxBytes: ${message}: raise maxBytes, or use Redis`);
  }
  async close() {
    await this.#persisted?.written();
    this.#clear();
  }
  on(event, listener) {
    return this.#listeners.on(event, listener);
  }
  async health() {
    return { state: "available", since: this.#since, roundTripMs: 0, pending: 0, cause: void 0 };
  }
  stats() {
    const { keys, bytes } = this.#states.usage;
    const { maxKeys, maxBytes } = this.#bounds;
    return {
      kind: "memory",
      state: "available",
      since: this.#since,
      pending: 0,
      keys,
      bytes,
      maxKeys,
      maxBytes,
      evicted: this.#states.evicted,
      blocked: this.#bans.blocks.size
    };
  }
  offenders(query) {
    return offendersOf("memoryStore", this.#refusals, query);
  }
  async forget(identity) {
    const text = identityText("forget", identity);
    const start = afterKind(text);
    this.#states.forget(text.slice(0, start), text.slice(start));
    this.#kept.reset(void 0, [text]);
    this.#lists.forget(text);
    this.#refusals?.forget(text);
    this.#refusalSlices.forget(text);
    await this.#bans.forget(text);
    this.#persisted?.changed();
    await this.#persisted?.written();
  }
  list(name) {
    return new KeptList(checkedListName("memoryStore: list", name), this.#lists);
  }
  clear() {
    this.#persisted?.changed();
    this.#clear();
  }
  #clear() {
    this.#sweeper.stop();
    this.#states = this.#makeStates();
    this.#bans = this.#makeBans();
    this.#kept = new KeptRecords(this.#states);
    this.#lists.clear();
    this.#refusals?.clear();
    this.#refusalSlices.clear();
  }
  #debit(request, now) {
    const { plan, costs } = request;
    const { tables, values: identities } = this.#states.placesOf(request);
    const values = new Array(STRIDE * plan.reports);
    for (let i = 0, at = 0; i < tables.length; i++) {
      const table = tables[i];
      table.look(identities[plan.cells[i].identity], now, 0);
      const { hasState } = table;
      if (costs[i] !== 0) table.debit(costs[i]);
      at = table.report(values, at, true);
      if (table.hasState !== hasState) this.#states.resized(table, now);
    }
    if (this.#states.areTooMany) this.#states.makeRoom(now, tables);
    return { now, allowed: true, values, offset: 0 };
  }
  #change(request, now) {
    if (request.op === DEBIT) return this.#debit(request, now);
    const { tables, values: identities } = this.#states.placesOf(request);
    const charge2 = request.charge;
    const receipts = receiptsOf(request.plan, charge2);
    const values = new Array(STRIDE * request.plan.reports);
    let isHeld2 = true;
    for (let i = 0, at = 0; i < tables.length; i++) {
      const table = tables[i];
      const cell = request.plan.cells[i];
      const cost = request.costs[i];
      table.look(identities[cell.identity], now, 0);
      if (request.op === RENEW) {
        if (!table.renew(cost, request.permitId)) isHeld2 = false;
      } else if (request.op === REFUND || CELL_KINDS[cell.kernel].hasPermits) {
        table.refund(cost, receipts[i], charge2.now, request.permitId, charge2.refunded?.[i] ?? 0);
      }
      at = table.report(values, at, true);
    }
    return { now, allowed: true, values, offset: 0, ...!isHeld2 && { outcome: "unknown" } };
  }
};
function boundsOf({ clock, maxKeys = 1e5, maxBytes = 268435456 }) {
  wholeNumber("memoryStore", "maxKeys", maxKeys, 1, MAX_KEYS);
  wholeNumber("memoryStore", "maxBytes", maxBytes, LEAST_BYTES);
  return { maxKeys, maxBytes, graceMs: clock ? STRANGE_CLOCK_GRACE_MS : 0 };
}
function chargeRefused({ kernel }, table, cost, permitId) {
  if (cost !== 0 && !CELL_KINDS[kernel].hasPermits) table.charge(cost, permitId);
}
function hasToWait(values, from, to) {
  for (let at = from; at < to; at += STRIDE) if (values[at + 1] > 0) return true;
  return false;
}
function isRefusedForNow({ reports }, { values }) {
  for (let at = 0; at < STRIDE * reports; at += STRIDE) if (values[at + 1] < 0) return false;
  return true;
}

// packages/core/src/policy/private-address.ts
var STARTS = [
  // Private (RFC 1918), loopback, link-local, and of a carrier's NAT (RFC 6598).
  "(?:10|127|192\\.168|169\\.254)\\.",
  "172\\.(?:1[6-9]|2\\d|3[01])\\.",
  "100\\.(?:6[4-9]|[7-9]\\d|1[01]\\d|12[0-7])\\.",
  // Unique local (fc00::/7), link-local (fe80::/10), and loopback, which is in `::/64` as addresses are grouped.
  "f(?:[cd][\\da-f]|e[89ab])[\\da-f]:",
  "::1(?:/|$)|::/"
];
var PRIVATE = new RegExp(STARTS.join("|"), "iy");
function isPrivateAddress(text, start = 0) {
  PRIVATE.lastIndex = start;
  return PRIVATE.test(text);
}

// packages/core/src/policy/ban.ts
var BAN_OPTIONS = ["by", "after", "within", "for", "forgetAfter", "jitter", "scope", "policy", "private"];
var MAX_STRIKES = 1e3;
var MAX_TIMES = 1e3;
function drawJitter({ jitterMs }) {
  return jitterMs === 0 ? 0 : Math.floor(Math.random() * (jitterMs + 1));
}
function strikeOf(ban, terms, identities) {
  return ban.countsRefusals && ban.covers(identities[terms.identity]) ? drawJitter(ban) : void 0;
}
function banFor(policyWhere, policy, kinds, option) {
  const where = `${policyWhere}: ban`;
  knownOptions(where, option, [...BAN_OPTIONS, ...ADDED_BAN_OPTIONS]);
  const options = option;
  const by = kindFor(where, kinds, options.by);
  const after = wholeNumber(where, "after", options.after, 1);
  if (after > MAX_STRIKES) invalidPolicy(where, "after", `at most ${MAX_STRIKES} strikes`, after);
  const withinMs = spanMs(where, "within", options.within);
  const rungs = ladder(where, options.for);
  const longest = rungs[rungs.length - 1];
  const { forgetAfter = Math.max(THIRTY_DAYS_MS, withinMs), scope: ofBan = "policy" } = options;
  const forgetAfterMs = spanMs(where, "forgetAfter", forgetAfter);
  if (forgetAfterMs < withinMs) {
    invalidPolicy(where, "forgetAfter", `at least within, ${durationText(withinMs)}`, forgetAfter);
  }
  const jitterMs = options.jitter === void 0 ? 0 : spanMs(where, "jitter", options.jitter);
  if (jitterMs > longest) {
    invalidPolicy(where, "jitter", `at most the last ban, ${durationText(longest)}`, options.jitter);
  }
  const scope = oneOf(where, "scope", ofBan, ["policy", "store"]);
  const { private: isPrivateToo = false } = options;
  if (typeof isPrivateToo !== "boolean") invalidPolicy(where, "private", "true or false", isPrivateToo);
  const start = startOf2(by);
  const spares = by === "ip" && !isPrivateToo;
  return {
    by,
    jitterMs,
    terms: {
      scope: scope === "store" ? EVERY_POLICY : options.policy ?? policy,
      policy,
      after,
      withinMs,
      forgetAfterMs,
      rungs
    },
    countsRefusals: option.count === void 0,
    // Where a key is missing, another kind may be counted in its place.
    covers: (identity) => identity.startsWith(start) && !(spares && isPrivateAddress(identity, start.length))
  };
}
var THIRTY_DAYS_MS = 30 * 864e5;
var ADDED_BAN_OPTIONS = ["count", "respond", "trap"];
function kindFor(where, kinds, by) {
  const known2 = kinds.map(show).join(" or ");
  if (by === void 0) {
    if (kinds.length === 1) return kinds[0];
    invalidPolicy(where, "by", `the kind that is banned, as the policy counts several: ${known2}`, by);
  }
  return kinds.find((kind) => kind === by) ?? invalidPolicy(where, "by", `a kind that the policy counts: ${known2}`, by);
}
function ladder(where, option) {
  const rungs = Array.isArray(option) ? listed(where, option) : grown(where, option);
  if (rungs.length > MAX_RUNGS) invalidPolicy(where, "for", `at most ${MAX_RUNGS} rungs, got ${rungs.length}`, option);
  return Object.freeze(rungs);
}
function listed(where, durations) {
  if (durations.length === 0) invalidPolicy(where, "for", 'durations, such as ["10m", "1h", "1d"]', durations);
  const rungs = durations.map((duration, i) => spanMs(where, `for[${i}]`, duration));
  rungs.forEach((ms, i) => {
    const before = rungs[i - 1];
    if (before !== void 0 && ms <= before) {
      invalidPolicy(where, `for[${i}]`, `a longer time than the rung before, ${durationText(before)}`, durations[i]);
    }
  });
  return rungs;
}
function grown(where, option) {
  if (typeof option !== "object" || option === null) {
    invalidPolicy(where, "for", 'durations, such as ["10m", "1h", "1d"], or { first, times, max }', option);
  }
  knownOptions(`${where}: for`, option, ["first", "times", "max"]);
  const { first: first2, times = 2, max } = option;
  const firstMs = spanMs(where, "for: first", first2);
  const maxMs = spanMs(where, "for: max", max);
  if (maxMs < firstMs) invalidPolicy(where, "for: max", `at least the first, ${durationText(firstMs)}`, max);
  if (typeof times !== "number" || !(times > 1 && times <= MAX_TIMES)) {
    invalidPolicy(where, "for: times", `a number above 1, up to ${MAX_TIMES}`, times);
  }
  const rungs = [firstMs];
  for (let ms = firstMs; ms < maxMs && rungs.length <= MAX_RUNGS; ) {
    ms = Math.min(maxMs, Math.max(ms + 1, Math.floor(ms * times)));
    rungs.push(ms);
  }
  if (rungs.length > MAX_RUNGS) {
    invalidPolicy(where, "for: times", `a factor that reaches max within ${MAX_RUNGS} rungs`, times);
  }
  return rungs;
}

// packages/core/src/store/units.ts
var BUILT_IN_UNITS = [
  "requests",
  "content-bytes",
  "response-bytes",
  "concurrent-requests"
];
function isOwnUnit(unit) {
  return !BUILT_IN_UNITS.includes(unit);
}
function isBytes(unit) {
  return unit === "content-bytes" || unit === "response-bytes";
}

// packages/core/src/policy/kinds.ts
function checkKinds(where, keys, known2) {
  keys.forEach((key, i) => {
    const field = `${where}: limits[${i}]`;
    const kind = kindOf2(key);
    if (!isKind(kind)) {
      invalidPolicy(field, "key", `a kind of up to ${LONGEST_KIND} letters, digits, "_", "-", ".", ":" and "+"`, kind);
    }
    const other = known2.get(kind);
    if (other && !isAlike(other.key, key)) {
      const got = `got another function of the kind ${show(kind)} than ${other.field}`;
      wrongPolicy(`${field}: key: expected a kind of its own, such as by keyed('name', fn), ${got}`);
    }
    if (!other) known2.set(kind, { key, field });
  });
}
function valueFor(where, key, { kind, value }) {
  const field = kind === "key" ? `${where}: key` : `${where}: key: ${kind}`;
  if (!key?.parts) return checkedKey(where, simpleValue(field, key, value));
  const { parts: parts2 } = key;
  if (!Array.isArray(value) || value.length !== parts2.length) {
    invalidKey(field, `an array of ${parts2.length} values`, value);
  }
  return checkedKey(where, joined(parts2.map((part3, i) => simpleValue(field, part3, value[i]))));
}
function simpleValue(field, key, value) {
  const text = isKeyValue(value) ? String(value) : "";
  if (text === "") invalidKey(field, "a non-empty string or a number", value);
  return (key?.normalize ? key.normalize(text) : text) || invalidKey(field, "a value of this kind", value);
}

// packages/core/src/policy/plan.ts
function readablePlan(own) {
  const { cells, starts, resolved, sharesTurns, reserves } = own;
  const caps = cells.map((_, c) => capOf(own, c));
  const units = cells.map(({ limits }) => limits[0].unit);
  const inResult = cells.flatMap(({ limits }) => limits);
  const [first2] = resolved;
  const hasPermits3 = cells.some(({ kernel }) => CELL_KINDS[kernel].hasPermits);
  const takesOnes = units.every((unit) => unit === "requests" || unit === "concurrent-requests");
  const reserving = reserves?.some((steps) => steps.length > 0) ? reserves : void 0;
  return Object.freeze({
    ...own,
    identities: starts.length,
    reports: resolved.length,
    positions: resolved.map((limit) => inResult.indexOf(limit)),
    isSimple: resolved.length === 1 && !first2?.queue && first2?.spreadMs === void 0 && !sharesTurns,
    isPlain: takesOnes && !hasPermits3 && !reserving && !own.ban && !own.keeps,
    hasPermits: hasPermits3,
    ones: cells.map(() => 1),
    units,
    caps: caps.every((cap) => cap === Number.POSITIVE_INFINITY) ? void 0 : caps,
    takesOnes,
    reserves: reserving
  });
}
function capOf({ cells, cellOf: cellOf2, definitions }, c) {
  if (definitions[cellOf2.indexOf(c)]?.estimate !== "cap") return Number.POSITIVE_INFINITY;
  return Math.max(1, cells[c].limits[0].capacity);
}

// packages/core/src/policy/plan-of-kind.ts
var made = /* @__PURE__ */ new WeakMap();
function planOf(whole3, identities) {
  if (identities.length === whole3.identities) return whole3;
  const parts2 = made.get(whole3) ?? /* @__PURE__ */ new Map();
  made.set(whole3, parts2);
  const id = identities.join();
  const part3 = parts2.get(id) ?? makePart(whole3, identities);
  parts2.set(id, part3);
  return part3;
}
function makePart(whole3, identities) {
  const chosen = whole3.cells.flatMap(({ identity }, c) => identities.includes(identity) ? [c] : []);
  const limits = whole3.cellOf.flatMap((c, i) => chosen.includes(c) ? [i] : []);
  const ofCells = (all) => chosen.map((c) => all[c]);
  const ofLimits = (all) => limits.map((i) => all[i]);
  const cells = ofCells(whole3.cells).map(
    (cell) => Object.freeze({ ...cell, identity: identities.indexOf(cell.identity) })
  );
  const { ban } = whole3;
  return readablePlan({
    ...whole3,
    cells,
    starts: identities.map((i) => whole3.starts[i]),
    resolved: ofLimits(whole3.resolved),
    cellOf: ofLimits(whole3.cellOf).map((c) => chosen.indexOf(c)),
    reserves: whole3.reserves && ofCells(whole3.reserves),
    definitions: ofLimits(whole3.definitions),
    ban: ban && identities.includes(ban.identity) ? { ...ban, identity: identities.indexOf(ban.identity) } : void 0
  });
}

// packages/core/src/policy/given-identities.ts
function kindsOf(policy, replacement2) {
  return replacement2 && replaceable(policy, replacement2).length > 0 ? [...policy.kinds, kindOf2(replacement2.key)] : policy.kinds;
}
function keysOf(policy, replacement2, given) {
  if (!replacement2 || given.kind !== kindOf2(replacement2.key)) return policy.given(given);
  const indices = replaceable(policy, replacement2);
  if (indices.length === 0) return void 0;
  const text = startOf2(given.kind) + valueFor(policy.where, replacement2.key, given);
  const identities = indices.map(() => text);
  return { value: given.value, identities, finest: text, planOf: (whole3) => planOf(whole3, indices) };
}
function givenIn(where, kinds, identity) {
  if (isPlainObject(identity)) {
    const [[kind, value] = ["", void 0], ...others] = entriesIn2(identity) ?? [];
    if (others.length > 0 || !kinds.includes(kind)) wrongIdentity(where, kinds, identity);
    return { kind, value };
  }
  if (!takesText(kinds)) wrongIdentity(where, kinds, identity);
  return { kind: kinds[0], value: identity };
}
function takesText([kind, ...others]) {
  return others.length === 0 && !kind?.includes("+");
}
function isPlainObject(subject) {
  const prototype = prototypeOf(subject);
  return prototype === Object.prototype || prototype === null;
}
function prototypeOf(subject) {
  try {
    return typeof subject === "object" && subject !== null ? Object.getPrototypeOf(subject) : void 0;
  } catch {
    return void 0;
  }
}
function entriesIn2(value) {
  try {
    return isPlainObject(value) ? Object.entries(value) : void 0;
  } catch {
    return void 0;
  }
}
function replaceable({ keys }, { mayReplace }) {
  return keys.flatMap((key, i) => kindOf2(key).split("+").some(mayReplace) ? [i] : []);
}
function wrongIdentity(where, kinds, got) {
  const examples = kinds.map((kind) => {
    const name = /^\w+$/.test(kind) ? kind : JSON.stringify(kind);
    const values = kind.split("+").map(() => "\u2026");
    return `{ ${name}: ${values.length > 1 ? `[${values.join(", ")}]` : "\u2026"} }`;
  });
  const given = isPlainObject(got) ? (entriesIn2(got) ?? []).map(([kind]) => kind) : void 0;
  const expected = takesText(kinds) ? ["a non-empty string or a number", ...examples].join(", or ") : examples.join(" or ");
  const shown2 = given ? shownKinds(given) : show(got);
  throw new SluiceError("INVALID_KEY", `${where}: key: expected ${expected}, got ${shown2}`);
}
function shownKinds(kinds) {
  if (kinds.length === 1) return `an object of the kind ${show(kinds[0])}`;
  const several = kinds.length > 1 ? ", whose limits are apart: one call for each" : "";
  return `an object of ${kinds.length} kinds${several}`;
}

// packages/core/src/policy/limits/reserve.ts
function reserveSteps(where, reserve) {
  if (typeof reserve === "number") return [[1, amount2(where, "reserve", reserve)]];
  const steps = isRecord(reserve) ? Object.entries(reserve) : [];
  if (steps.length === 0) {
    const expected = "a share such as 0.2, whole units, or either by priority such as { 1: 0.2 }";
    invalidPolicy(where, "reserve", expected, reserve);
  }
  return steps.map(([text, value]) => {
    const priority = Number(text);
    if (text.trim() === "" || !Number.isFinite(priority)) {
      invalidPolicy(where, "reserve", "priorities that are numbers", text);
    }
    return [priority, amount2(where, `reserve[${text}]`, value)];
  });
}
function reservedFrom(steps, priority, capacity) {
  let units = 0;
  for (const [from, amount3] of steps) if (from > priority) units += unitsOf2(amount3, capacity);
  return units;
}
function checkReserve(where, steps, capacity) {
  const reserved = reservedFrom(steps, Number.NEGATIVE_INFINITY, capacity);
  if (capacity > 0 && reserved >= capacity) {
    invalidPolicy(where, "reserve", `less than the ${capacity} units that the limit holds`, reserved);
  }
}
function unitsOf2(amount3, capacity) {
  return amount3 >= 1 ? amount3 : Math.ceil(Number((amount3 * capacity).toFixed(6)));
}
function amount2(where, field, value) {
  const isShare = typeof value === "number" && value >= 0 && value < 1;
  if (!isShare && !(Number.isSafeInteger(value) && value >= 1)) {
    invalidPolicy(where, field, "a share from 0 to below 1, or whole units", value);
  }
  return value;
}

// packages/core/src/policy/costs.ts
var PERMITS = "concurrent-requests";
function checkedCost(policy, cost) {
  const { where } = policy;
  const entries = entriesIn2(cost);
  if (!entries) {
    const units = checkCost(where, "cost", cost);
    if (units > 1) checkNumber(policy, units, "INVALID_COST");
    return units;
  }
  const named = entries.map(([unit, units]) => {
    checkName(policy, unit, "INVALID_COST");
    return [unit, checkCost(where, `cost: ${unit}`, units)];
  });
  return { named: new Map(named) };
}
function actualUnits(policy, actual, field = "settle") {
  const { where } = policy;
  const units = actual.map(([unit, amount3]) => {
    if (unit === PERMITS) {
      throw new SluiceError(
        "INVALID_COST",
        `${where}: ${field}: expected no permits, which are released, got ${show(unit)}`
      );
    }
    checkName(policy, unit, "INVALID_COST", field);
    return [unit, checkCost(where, `${field}: ${unit}`, amount3)];
  });
  return new Map(units);
}
function checkNumber({ where, units }, cost, code) {
  if (units.has("requests") || ![...units].some(isOwnUnit)) return;
  const expected = `units by name, such as { ${JSON.stringify([...units].find(isOwnUnit))}: ${cost} }`;
  throw new SluiceError(code, `${where}: cost: expected ${expected}, as no limit counts requests, got ${cost}`);
}
function checkName({ where, units }, unit, code, field = "cost") {
  if (units.has(unit) && !isBytes(unit)) return;
  const known2 = [...units].filter((each) => !isBytes(each)).map(show);
  const expected = isBytes(unit) ? "no bytes, which are measured" : `units that limits count, ${known2.join(" or ") || "of which there are none"}`;
  throw new SluiceError(code, `${where}: ${field}: expected ${expected}, got ${show(unit)}`);
}
function costsOf(where, plan, cost, { bytes, responseBytes }, op) {
  const checked = (field, units) => checkCost(where, field, op === PEEK ? units ?? 0 : units);
  const { caps } = plan;
  const costs = plan.units.map((unit, c) => {
    if (unit === "content-bytes") return checked("bytes", bytes);
    if (unit === "response-bytes") return checked("responseBytes", responseBytes);
    return namedFor(plan, cost, c) ?? 0;
  });
  return caps ? costs.map((units, c) => Math.min(units, caps[c])) : costs;
}
function namedFor({ units, definitions, cellOf: cellOf2 }, cost, c) {
  const unit = units[c];
  const isRequests = unit === "requests";
  const takesOne = isRequests || unit === PERMITS;
  if (typeof cost === "number") {
    return isRequests ? cost : takesOne || cost === 0 ? Math.min(cost, 1) : void 0;
  }
  const { named, ofLimits } = cost;
  const own = ofLimits && definitions[cellOf2.indexOf(c)].cost;
  return (own === void 0 ? named.get(unit) : ofLimits?.get(own)) ?? (takesOne ? 1 : void 0);
}
function takesNothing(costs) {
  for (let c = 0; c < costs.length; c++) if (costs[c] !== 0) return false;
  return true;
}
function reservedFor(plan, reserves, priority) {
  const reserved = reserves.map(
    (steps, c) => steps.length === 0 ? 0 : reservedFrom(steps, priority, plan.cells[c].limits[0].capacity)
  );
  return takesNothing(reserved) ? void 0 : reserved;
}
function needsOf(plan, cost, costs, reserved) {
  const isUnknown = (unit, c) => unit === "response-bytes" || isOwnUnit(unit) && namedFor(plan, cost, c) === void 0;
  const ones = plan.units.map((unit, c) => isUnknown(unit, c) ? 1 : 0);
  return reserved || !takesNothing(ones) ? withReserved(costs, ones, reserved) : void 0;
}
function withReserved(costs, needs, reserved) {
  return costs.map((cost, c) => {
    const units = cost === 0 ? Math.min(needs[c], 1) : cost;
    return units > 0 ? units + (reserved?.[c] ?? 0) : 0;
  });
}
function checkCost(where, field, cost) {
  if (!Number.isSafeInteger(cost) || cost < 0) {
    throw new SluiceError(
      "INVALID_COST",
      `${where}: ${field}: expected a whole number of at least 0, got ${show(cost)}`
    );
  }
  return cost + 0;
}

// packages/core/src/policy/carry.ts
var LARGEST_NARROW = 2 ** 31 - 1;
function carriedForm(resolution, { carry = "", unit }) {
  const { kernel, carriedId, params } = resolution;
  const isLarge = kernel === "segments" && params[0] > LARGEST_NARROW;
  const id = `${carriedId}${isLarge ? ".large" : ""}${ofUnit(unit)}${carry}`;
  return { ...resolution, id, params: CELL_KINDS[kernel].widen?.(params) ?? params };
}
function ofUnit(unit) {
  if (unit === "content-bytes") return ".bytes";
  return unit === "response-bytes" ? ".response-bytes" : "";
}

// packages/core/src/policy/limits/lease.ts
function leaseOf(where, options) {
  if (typeof options !== "object" || options === null)
    invalidPolicy(where, "lease", 'an object such as { size: 10, ttl: "1s" }', options);
  knownOptions(`${where}: lease`, options, ["size", "ttl"]);
  return {
    size: wholeNumber(`${where}: lease`, "size", options.size, 1),
    ttlMs: waitMs(`${where}: lease`, "ttl", options.ttl)
  };
}
function leased(where, resolution, lease) {
  const { kernel, id, carriedId, params, report } = resolution;
  const { windowMs } = report;
  const { ttlMs } = lease;
  if (ttlMs > windowMs) invalidPolicy(`${where}: lease`, "ttl", `at most the window of ${windowMs} ms`, ttlMs);
  const tightened = CELL_KINDS[kernel].lease.tighten(where, params, ttlMs);
  if (!tightened) return { ...resolution, lease };
  const { params: counted, capacity } = tightened;
  return {
    ...resolution,
    id: leasedId(id, lease),
    // The reduction of a bucket's capacity depends on its limit.
    carriedId: leasedId(kernel === "bucket" ? id : carriedId, lease),
    params: counted,
    report: { ...report, capacity },
    lease
  };
}
function leasedWindow(windowMs, lease) {
  return lease ? windowMs + lease.ttlMs : windowMs;
}
function leasedId(id, lease) {
  return lease ? `${id}.leased.${lease.ttlMs}` : id;
}
function checkLeases(where, limits) {
  const [first2] = limits;
  if (limits.every(({ lease }) => lease === void 0)) return;
  const texts = limits.map(({ lease }) => lease && JSON.stringify(leaseOf(where, lease)));
  if (texts.some((text) => text !== texts[0])) {
    wrongPolicy(`${where}: lease: expected an equal one for every limit, or none`);
  }
  if (limits.some(({ unit }) => unit !== first2?.unit)) {
    wrongPolicy(`${where}: lease: expected limits that all count the same unit`);
  }
}

// packages/core/src/policy/units.ts
function idOfUnit(unit) {
  return isOwnUnit(unit) ? `_${unit}` : "";
}
function checkUnit(where, unit) {
  const isName = typeof unit === "string" && /^[A-Za-z0-9-]{1,32}$/.test(unit);
  if (!isName || clashing([unit, ...BUILT_IN_UNITS]) !== void 0) {
    invalidPolicy(where, "unit", '1 to 32 letters, digits and "-" that are no other spelling of a built-in unit', unit);
  }
  if (unit === "concurrent-requests") invalidPolicy(where, "unit", "another one, as concurrency counts it", unit);
  return unit;
}
function unitsOf3(where, limits) {
  const units = new Set(limits.map(({ unit }) => unit));
  const clash = clashing([...units]);
  if (clash !== void 0) invalidPolicy(where, "unit", "units that differ by more than case", clash);
  return units;
}
function clashing(units) {
  return units.find(
    (unit, i) => units.slice(0, i).some((other) => other !== unit && other.toLowerCase() === unit.toLowerCase())
  );
}

// packages/core/src/policy/cells.ts
function cellsFor(limits, tier, isRelaxed) {
  const groups = /* @__PURE__ */ new Map();
  for (const limit of limits) {
    const member = memberOf(limit, tier, isRelaxed);
    const { way, identity, prefix, resolved } = member;
    const unit = way === "in a log" ? idOfUnit(resolved.unit) : "";
    const group = way === "alone" ? limit : `${way} ${identity} ${prefix}${unit}`;
    groups.set(group, [...groups.get(group) ?? [], member]);
  }
  const cells = new Cells();
  for (const members of groups.values()) {
    const [first2] = members;
    if (first2.way === "in a log") cells.add(logCell(members));
    else if (members.length === 1) cells.add(cellOf(first2));
    else cells.addJoint(members.map(cellOf));
  }
  return Object.freeze(cells.all);
}
var Cells = class {
  all = [];
  #ids = /* @__PURE__ */ new Set();
  add(cell) {
    this.all.push(Object.freeze({ ...cell, id: this.#freeId(cell.id) }));
  }
  addJoint(members) {
    const sorted = [...members].sort((a, b) => a.id === b.id ? amountOf(a) - amountOf(b) : a.id < b.id ? -1 : 1);
    const joint = this.#freeId(jointId(sorted));
    for (const cell of sorted) this.add({ ...cell, id: `${joint}/${cell.id}`, joint });
  }
  /** Equal limits on different keys must not meet where the keys happen to be equal text. */
  #freeId(id) {
    let free = id;
    for (let n = 2; this.#ids.has(free); n++) free = `${id}.${n}`;
    this.#ids.add(free);
    return free;
  }
};
function memberOf(limit, tier, isRelaxed) {
  const { definition, resolution } = limit;
  const shared = tier?.shared.get(definition);
  const ownPrefix = (definition.policy === void 0 ? "" : `${definition.policy}/`) + (tier ? `${tier.name}.` : "");
  const isOwn = definition.reserve !== void 0 || definition.estimate !== void 0;
  const isInLog = resolution.kernel === "log" && !isOwn && shared === void 0;
  const isJoint = !tier && !isRelaxed && canBeJoint(limit);
  return {
    ...limit,
    prefix: shared === void 0 ? ownPrefix : `~${shared}.`,
    way: isInLog ? "in a log" : isJoint ? "joint" : "alone"
  };
}
function canBeJoint({ definition: { limit, window }, resolution: { kernel, lease } }) {
  return CELL_KINDS[kernel].canBeJoint && typeof limit !== "function" && typeof window !== "function" && !lease;
}
function cellOf(member) {
  const { prefix, resolution, resolved, identity } = member;
  const { kernel, id, params } = resolution;
  return { kernel, id: prefix + id, params, identity, limits: [resolved], ...traitsOf(member) };
}
function traitsOf({ definition, resolution: { lease } }) {
  return { ...lease && { lease }, ...definition.carry !== void 0 && { isCarried: true } };
}
var LONGEST_JOINT_ID = 40;
function amountOf({ params: [amount3 = 0] }) {
  return amount3;
}
function jointId(cells) {
  const ids = cells.map(({ id }) => id).join("+");
  return ids.length > LONGEST_JOINT_ID ? `joint.${hashOf(ids).slice(1)}` : ids;
}
function logCell(members) {
  const [first2] = members;
  const { prefix, definition, resolution, identity } = first2;
  const { lease } = resolution;
  const sorted = members.map(({ resolved }) => resolved).sort((a, b) => a.windowMs - b.windowMs || a.limit - b.limit);
  const windowsMs = sorted.map(({ windowMs }) => leasedWindow(windowMs, lease));
  const max = Math.max(...sorted.map(({ limit }) => limit));
  return {
    kernel: "log",
    id: prefix + leasedId(logId(sorted, definition.carry), lease),
    params: [max, Math.max(...windowsMs), ...sorted.flatMap(({ limit }, i) => [limit, windowsMs[i]])],
    identity,
    limits: sorted,
    ...traitsOf(first2)
  };
}
function logId(sorted, carry) {
  const ofUnit2 = idOfUnit(sorted[0].unit);
  if (carry === void 0) return `log.${sorted.flatMap(({ limit, windowMs }) => [limit, windowMs]).join(".")}${ofUnit2}`;
  return `log~${sorted.map(({ windowMs }) => windowMs).join(".")}${ofUnit2}${carry}`;
}

// packages/core/src/policy/charges.ts
var SHORTEST_MS = 1e3;
var LONGEST_MS = 366 * 864e5;
function keepTerms(where, charges, { consistency }, limits) {
  if (typeof charges !== "object" || charges === null) {
    invalidPolicy(where, "charges", 'an object such as { keep: "1h" }', charges);
  }
  knownOptions(`${where}: charges`, charges, ["keep"]);
  const forMs = durationMs(`${where}: charges`, "keep", charges.keep);
  if (forMs < SHORTEST_MS || forMs > LONGEST_MS) {
    invalidPolicy(`${where}: charges`, "keep", "1 second to 366 days", charges.keep);
  }
  if (consistency !== void 0) neverBeside(where, "charges", "consistency", charges);
  if (limits.some(({ lease }) => lease !== void 0)) neverBeside(where, "charges", "lease", charges);
  return Object.freeze({ forMs });
}

// packages/core/src/policy/limits/common.ts
var USUAL_NAMES = { limit: "limit", window: "window" };
function makeLimit(algorithm, options, extraOptions, resolveUnleased, names = USUAL_NAMES) {
  knownOptions(algorithm, options, ["name", "limit", "window", "key", "respond", "reserve", ...extraOptions]);
  const { limit, window } = checkCommon(algorithm, options, names);
  const { lease: leaseOptions } = options;
  const lease = leaseOptions === void 0 ? void 0 : leaseOf(algorithm, leaseOptions);
  const { unit: given = "requests" } = options;
  const unit = checkUnit(algorithm, given);
  const ofUnit2 = idOfUnit(unit);
  const { estimate } = options;
  if (estimate !== void 0) oneOf(algorithm, "estimate", estimate, ["cap"]);
  const resolve = (where, limit2, windowMs) => {
    const plain = resolveUnleased(where, limit2, windowMs);
    const resolution = ofUnit2 ? { ...plain, id: plain.id + ofUnit2, carriedId: plain.carriedId + ofUnit2 } : plain;
    return lease ? leased(where, resolution, lease) : resolution;
  };
  const known2 = typeof limit === "number" && typeof window === "number" ? resolve(algorithm, limit, window) : void 0;
  for (const field of unit === "response-bytes" ? ["lease", "reserve"] : []) {
    const value = options[field];
    if (value) neverBeside(algorithm, field, 'unit "response-bytes"', value);
  }
  if (options.reserve !== void 0) {
    if (lease) neverBeside(algorithm, "lease", "reserve", leaseOptions);
    const steps = reserveSteps(algorithm, options.reserve);
    if (known2) checkReserve(algorithm, steps, known2.report.capacity);
  }
  return Object.freeze({
    algorithm,
    unit: hasPermits(algorithm) ? "concurrent-requests" : unit,
    limit,
    window,
    resolve,
    ...options.key && { key: options.key },
    ...options.respond && { respond: options.respond },
    ...options.name !== void 0 && { name: options.name },
    ...options.reserve !== void 0 && { reserve: options.reserve },
    ...leaseOptions !== void 0 && { lease: leaseOptions },
    ...estimate !== void 0 && { estimate }
  });
}
function checkCommon(where, options, names = USUAL_NAMES) {
  optionalFunction(where, "key", options.key);
  if (options.respond !== void 0 && typeof options.respond !== "function") {
    invalidPolicy(where, "respond", "a responder such as reject()", options.respond);
  }
  refuseFactory(where, "respond", options.respond);
  if (options.name !== void 0) headerName(where, "name", options.name);
  const { limit, window } = options;
  return {
    limit: typeof limit === "function" ? limit : wholeNumber(where, names.limit, limit, 0),
    window: typeof window === "function" ? window : spanMs(where, names.window, window)
  };
}

// packages/core/src/policy/limits/relaxed.ts
var SHORTEST_MS2 = 10;
var LONGEST_MS2 = 6e4;
var NO_BUCKET = "buckets are counted by Redis alone: use slidingWindow or fixedWindow, or in code a lease, which never exceeds the limit";
var INSTEAD = {
  gcra: NO_BUCKET,
  tokenBucket: NO_BUCKET,
  leakyBucket: NO_BUCKET,
  slidingLog: "a log holds each unit: use slidingWindow or fixedWindow, or leave out consistency",
  concurrency: "permits are held in Redis: put concurrency into a limiter of its own, without consistency"
};
function relaxedTerms(where, consistency, limits) {
  if (typeof consistency !== "object" || consistency === null) {
    invalidPolicy(where, "consistency", 'an object such as { syncEvery: "100ms" }', consistency);
  }
  knownOptions(`${where}: consistency`, consistency, ["syncEvery"]);
  const syncEveryMs = durationMs(`${where}: consistency`, "syncEvery", consistency.syncEvery);
  if (syncEveryMs < SHORTEST_MS2 || syncEveryMs > LONGEST_MS2) {
    invalidPolicy(`${where}: consistency`, "syncEvery", "10 ms to 1 minute", syncEveryMs);
  }
  for (const { algorithm, lease } of limits) {
    const why = INSTEAD[algorithm];
    if (why !== void 0) refuse(where, why);
    if (lease !== void 0) {
      refuse(
        where,
        "expected none beside lease: leases never exceed the limit, relaxed counts of busy keys never wait. Choose one"
      );
    }
  }
  return Object.freeze({ syncEveryMs });
}
function countedInFull(where, resolution, { syncEveryMs }) {
  const { kernel, id, params, report } = resolution;
  const { countInFull } = CELL_KINDS[kernel];
  if (!countInFull) refuse(where, `a ${kernel} is not counted by processes alone: use slidingWindow or fixedWindow`);
  if (syncEveryMs > report.windowMs) {
    invalidPolicy(`${where}: consistency`, "syncEvery", `at most the window of ${report.windowMs} ms`, syncEveryMs);
  }
  return { ...resolution, id: `${id}.relaxed`, params: countInFull(params) };
}
function refuse(where, why) {
  wrongPolicy(`${where}: consistency: ${why}`);
}
function countingDebts(resolution) {
  const { kernel, params } = resolution;
  return { ...resolution, params: CELL_KINDS[kernel].widen?.(params) ?? params };
}
function countingRefusals(where, resolution) {
  const { kernel, id, carriedId, params, lease } = resolution;
  const { countRefusals } = CELL_KINDS[kernel];
  if (!countRefusals) return resolution;
  if (lease) {
    wrongPolicy(`${where}: lease: expected none on windows beside onDeny: "charge"`);
  }
  return { ...resolution, id: `${id}.refusals`, carriedId: `${carriedId}.refusals`, params: countRefusals(params) };
}

// packages/core/src/policy/limits/sliding-log.ts
var MAX_LOG_LIMIT = 1e6;
function slidingLog(options) {
  if (isBytes(options?.unit))
    invalidPolicy("slidingLog", "unit", "none of bytes: use a window or a bucket", options.unit);
  return makeLimit("slidingLog", options, ["unit", "estimate", "lease"], (where, limit, windowMs) => {
    exactProduct(where, "limit", limit, windowMs);
    if (limit > MAX_LOG_LIMIT) invalidPolicy(where, "limit", `at most ${MAX_LOG_LIMIT} for an exact log`, limit);
    return {
      kernel: "log",
      id: `log.${limit}.${windowMs}`,
      carriedId: `log~${windowMs}`,
      params: [limit, windowMs, limit, windowMs],
      report: { algorithm: "slidingLog", limit, windowMs, capacity: limit, queue: false }
    };
  });
}
var perSecond = (limit, options = {}) => slidingLog({ ...options, limit, window: 1e3 });
var perMinute = (limit, options = {}) => slidingLog({ ...options, limit, window: 6e4 });
var perHour = (limit, options = {}) => slidingLog({ ...options, limit, window: 36e5 });

// packages/core/src/policy/limits/sliding-window.ts
var MAX_SEGMENTS = 1e3;
function defaultSegments(windowMs) {
  for (let segments = Math.min(60, windowMs); ; segments--) if (windowMs % segments === 0) return segments;
}
function slidingWindow(options) {
  const { segments, precision, edge = "weighted", rounding = "down", ...rate } = options ?? {};
  oneOf("slidingWindow", "edge", edge, ["weighted", "strict", "dropped"]);
  oneOf("slidingWindow", "rounding", rounding, ["down", "up"]);
  if (segments !== void 0 && precision !== void 0) {
    neverBeside("slidingWindow", "precision", "segments", precision);
  }
  if (segments !== void 0) wholeNumber("slidingWindow", "segments", segments, 1);
  const segmentMs = precision === void 0 ? void 0 : durationMs("slidingWindow", "precision", precision);
  const edgeCode = edge === "strict" ? STRICT : edge === "dropped" ? DROPPED : rounding === "up" ? WEIGHTED_UP : WEIGHTED_DOWN;
  return makeLimit(
    "slidingWindow",
    rate,
    ["segments", "precision", "edge", "rounding", "unit", "estimate", "lease"],
    (where, limit, windowMs) => {
      exactProduct(where, "limit", limit, windowMs);
      const count2 = segments ?? (segmentMs ? windowMs / segmentMs : edge === "weighted" ? 1 : defaultSegments(windowMs));
      if (!Number.isInteger(count2) || count2 > MAX_SEGMENTS || windowMs % count2 !== 0) {
        const expected = `up to ${MAX_SEGMENTS} equal parts of the window of ${windowMs} ms in whole ms`;
        invalidPolicy(where, segmentMs ? "precision" : "segments", expected, segmentMs ?? segments);
      }
      return {
        kernel: "segments",
        id: `sliding.${limit}.${windowMs}.${count2}.${edgeCode}`,
        carriedId: `sliding~${windowMs}.${count2}.${edgeCode}`,
        params: [limit, windowMs, count2, edgeCode],
        report: { algorithm: "slidingWindow", limit, windowMs, capacity: limit, queue: false }
      };
    }
  );
}
var LARGEST_DEFAULT_LOG = 1e3;
function defaultLimit(rate, isRelaxed = false) {
  const log = slidingLog({ limit: 1, window: "1ms" });
  const segments = slidingWindow({ limit: 1, window: "1ms", edge: "strict" });
  const choose = (limit) => limit <= LARGEST_DEFAULT_LOG && !isRelaxed ? log : segments;
  const { algorithm } = choose(typeof rate.limit === "number" ? rate.limit : 0);
  return makeLimit(algorithm, rate, [], (where, limit, windowMs) => choose(limit).resolve(where, limit, windowMs));
}

// packages/core/src/policy/shared-turns.ts
var [LEAST_TTL_MS, MAX_TTL_MS] = [100, 6e4];
function sharedTurnsFor(where, option = false, limits) {
  if (option === false) return void 0;
  const options = option === true ? {} : option;
  if (typeof options !== "object" || options === null) {
    invalidPolicy(where, "sharedTurns", "true, false or options such as { ttl: '500ms' }", option);
  }
  if (limits.some(({ lease }) => lease !== void 0)) {
    wrongPolicy(`${where}: sharedTurns: expected none beside lease`);
  }
  knownOptions(`${where}: sharedTurns`, options, ["ttl"]);
  const { ttl = "500ms" } = options;
  const ttlMs = durationMs(`${where}: sharedTurns`, "ttl", ttl);
  if (ttlMs < LEAST_TTL_MS || ttlMs > MAX_TTL_MS) {
    invalidPolicy(`${where}: sharedTurns`, "ttl", "a duration from '100ms' to '1m'", ttl);
  }
  return Object.freeze({ ttlMs });
}

// packages/core/src/policy/policy.ts
var POLICY_OPTIONS = [
  "name",
  "limit",
  "window",
  "limits",
  "key",
  "onDeny",
  "consistency",
  "tiers",
  "tier",
  "priority",
  "sharedTurns",
  "charges",
  "ban"
];
var MAX_PLANS = 1e3;
var Policy = class {
  name;
  where;
  limits;
  /** The op that charges a request. */
  consume;
  /** The tier that it is the policy of. */
  tier;
  /** Undefined where all requests have priority 0. */
  priority;
  /** The distinct key functions of all limits; `undefined` is the policy's own default. */
  keys;
  /** The beginnings of the identities of each of them: their kind. */
  starts;
  /** The kinds of what it counts, each once. */
  kinds;
  all = [this];
  units;
  keeps;
  ban;
  /**
   * Whether requests differ in the value of one key, and in nothing else: nearly every policy. Without a path of their own,
   * decisions in memory take 12 % longer, or more.
   */
  isPlain;
  #keyOf;
  #tier;
  #sharesTurns;
  #relaxed;
  #plans = /* @__PURE__ */ new Map();
  #static;
  constructor(options, tier) {
    this.#tier = tier;
    this.tier = tier?.name;
    this.name = options.name === void 0 ? "default" : headerName(`policy ${show(options.name)}`, "name", options.name);
    this.where = `policy "${this.name}"`;
    const { where } = this;
    optionalFunction(where, "key", options.key);
    const { onDeny = "none" } = options;
    const chargesRefusals = oneOf(where, "onDeny", onDeny, ["none", "charge"]) === "charge";
    this.consume = chargesRefusals ? CHARGE : CONSUME;
    this.priority = priorityFor(where, options.priority, this.tier);
    this.limits = limitsOf(where, options);
    if (chargesRefusals && this.limits.some(({ reserve }) => reserve !== void 0)) {
      wrongPolicy(`${where}: reserve: expected none beside onDeny: "charge"`);
    }
    checkLeases(where, this.limits);
    this.#sharesTurns = sharedTurnsFor(where, options.sharedTurns, this.limits);
    this.#relaxed = options.consistency === void 0 ? void 0 : relaxedTerms(where, options.consistency, this.limits);
    if (this.#relaxed && this.#sharesTurns) {
      neverBeside(where, "consistency", "sharedTurns", options.consistency);
    }
    this.keeps = options.charges === void 0 ? void 0 : keepTerms(where, options.charges, options, this.limits);
    const keyFunctions = this.limits.map((limit) => limit.key ?? options.key);
    checkKinds(where + (tier ? `: tiers: ${tier.name}` : ""), keyFunctions, tier?.known ?? /* @__PURE__ */ new Map());
    this.keys = keyFunctions.filter((key, i) => keyFunctions.findIndex((other) => isSameKey(other, key)) === i);
    this.#keyOf = keyFunctions.map((key) => this.keys.findIndex((other) => isSameKey(other, key)));
    this.starts = this.keys.map((key) => startOf2(kindOf2(key)));
    this.kinds = [...new Set(this.keys.map(kindOf2))];
    refuseEqualNames(where, this.limits);
    this.units = unitsOf3(where, this.limits);
    this.ban = options.ban === void 0 ? void 0 : banFor(where, this.name, this.kinds, options.ban);
    if (this.ban && this.limits.some(({ lease }) => lease !== void 0)) {
      neverBeside(where, "ban", "lease", options.ban);
    }
    const values = this.limits.map(({ limit, window }) => [limit, window]);
    const fixed = values.flat().every((value) => typeof value === "number");
    this.#static = fixed ? this.#makePlan(values) : void 0;
    this.isPlain = fixed && this.keys.length === 1 && this.priority === void 0;
  }
  of(_subject, _context, tier) {
    if (tier !== void 0) invalidPolicy(this.where, "tier", "none, as there are no tiers", tier);
    return this;
  }
  /** The plan for this request: the same object for the same numbers. */
  plan(subject, context) {
    if (this.#static) return this.#static;
    const values = [];
    try {
      for (const { limit, window } of this.limits) {
        values.push(typeof limit === "function" ? limit(subject, context) : limit);
        values.push(typeof window === "function" ? window(subject, context) : window);
      }
    } catch (error) {
      ignorePromises(values);
      throw error;
    }
    return whenAllKnown(values, (known2) => this.#planFor(known2));
  }
  /** `given`: limit and window of each limit in turn. */
  #planFor(given) {
    const values = this.limits.map(({ window }, i) => {
      const windowMs = typeof window === "function" ? spanMs : durationMs;
      return [wholeNumber(this.where, "limit", given[2 * i], 0), windowMs(this.where, "window", given[2 * i + 1])];
    });
    const id = values.join();
    let plan = this.#plans.get(id);
    if (!plan) {
      if (this.#plans.size >= MAX_PLANS) this.#plans.clear();
      plan = this.#makePlan(values);
      this.#plans.set(id, plan);
    }
    return plan;
  }
  /**
   * The identity of a request for each key.
   *
   * @throws SluiceError `INVALID_KEY`; a `RequestFault` where the request is to blame
   */
  identitiesOf(subject, context) {
    const { keys, starts, where } = this;
    const identities = new Array(keys.length);
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i];
      const value = key ? key(subject, context) : subject;
      if (key && typeof value !== "string" && isThenable(value)) {
        return this.#valuesOf(subject, context, i, value).then(
          (late) => starts.map(
            (start, j) => j < i ? identities[j] : start + checkedKey(where, late[j - i], context !== void 0)
          )
        );
      }
      identities[i] = starts[i] + checkedKey(where, value, context !== void 0);
    }
    return identities;
  }
  /** The results of the key functions from one on, of which that one has returned a promise. All are called at once. */
  async #valuesOf(subject, context, from, first2) {
    const values = [first2];
    try {
      for (const key of this.keys.slice(from + 1)) values.push(key ? key(subject, context) : subject);
    } catch (error) {
      ignorePromises(values);
      throw error;
    }
    return Promise.all(values);
  }
  /**
   * Resolves a request, as far as the caller has not done so already.
   *
   * @throws SluiceError `INVALID_KEY`, `INVALID_POLICY`; a `RequestFault` where the request is to blame
   */
  resolve(subject, context, knownIdentities, knownPlan, knownPriority) {
    const isKnown = knownIdentities !== void 0 || knownPlan !== void 0 || knownPriority !== void 0;
    return this.isPlain && !isKnown ? this.#resolvePlainly(subject, context) : this.#resolveInFull(subject, context, knownIdentities, knownPlan, knownPriority);
  }
  /** A separate method, as V8 inlines only small ones, and nearly every request is resolved plainly. */
  #resolveInFull(subject, context, knownIdentities, knownPlan, knownPriority) {
    let identities = knownIdentities;
    let plan = knownPlan;
    let priority;
    try {
      identities ??= this.identitiesOf(subject, context);
      plan ??= this.plan(subject, context);
      priority = knownPriority === void 0 ? this.priority?.(subject, context) ?? 0 : checkPriority(this.where, knownPriority);
    } catch (error) {
      ignorePromises([identities, plan]);
      throw error;
    }
    if (!(identities instanceof Promise || plan instanceof Promise || priority instanceof Promise)) {
      return this.#resolved(identities, plan, priority);
    }
    return Promise.all([identities, plan, priority]).then((all) => this.#resolved(...all));
  }
  #resolved(identities, plan, priority) {
    return { policy: this, plan, identities, values: void 0, priority };
  }
  #resolvePlainly(subject, context) {
    const [key] = this.keys;
    const value = key ? key(subject, context) : subject;
    if (key && typeof value !== "string" && isThenable(value)) {
      return Promise.resolve(value).then((late) => this.#plain(late, context));
    }
    return this.#plain(value, context);
  }
  #plain(given, context) {
    const value = checkedKey(this.where, given, context !== void 0);
    const plan = this.#static;
    return { policy: this, plan, identities: [this.starts[0] + value], values: [value], priority: 0 };
  }
  /** The keys of an identity that was given by hand. Undefined where nothing is counted by its kind. */
  given(identity) {
    if (!this.kinds.includes(identity.kind)) return void 0;
    const indices = this.#indicesOf(identity.kind);
    const identities = indices.map((i) => this.starts[i] + valueFor(this.where, this.keys[i], identity));
    const finest = identities[indices.indexOf(this.#finestOf(indices))];
    return { value: identity.value, identities, finest, planOf: (whole3) => planOf(whole3, indices) };
  }
  /** By the starts that requests are counted under: a function of the user's may get another `kind` later. */
  #indicesOf(kind) {
    const start = startOf2(kind);
    return this.starts.flatMap((each, i) => each === start ? [i] : []);
  }
  /** Which key groups addresses into the smallest groups. */
  #finestOf(indices) {
    const bits = indices.map((i) => bitsOf(this.keys[i]));
    return indices[bits.indexOf(Math.max(...bits))];
  }
  #banTerms() {
    if (!this.ban) return void 0;
    return Object.freeze({ ...this.ban.terms, identity: this.#finestOf(this.#indicesOf(this.ban.by)) });
  }
  #banningPolicy() {
    const scope = this.ban?.terms.scope;
    return scope === this.name || scope === EVERY_POLICY ? void 0 : scope;
  }
  #makePlan(values) {
    const resolutions = this.limits.map((limit, i) => {
      const resolution = limit.resolve(this.where, ...values[i]);
      if (this.#relaxed) return countedInFull(this.where, resolution, this.#relaxed);
      if (limit.carry !== void 0) return carriedForm(resolution, limit);
      if (this.consume === CHARGE) return countingRefusals(this.where, resolution);
      return isOwnUnit(limit.unit) ? countingDebts(resolution) : resolution;
    });
    const limits = namesFor(this.name, this.limits, resolutions).map((name, i) => {
      const [definition, resolution] = [this.limits[i], resolutions[i]];
      const resolved2 = Object.freeze({ name, ...resolution.report, unit: definition.unit });
      return { definition, resolution, resolved: resolved2, identity: this.#keyOf[i] };
    });
    const resolved = limits.map((limit) => limit.resolved);
    const cells = cellsFor(limits, this.#tier, this.#relaxed !== void 0);
    const cellOf2 = resolved.map((limit) => cells.findIndex((cell) => cell.limits.includes(limit)));
    const reserves = cells.map((_, c) => {
      const { reserve } = this.limits[cellOf2.indexOf(c)];
      return reserve === void 0 ? [] : reserveSteps(this.where, reserve);
    });
    return readablePlan({
      policy: this.name,
      cells,
      starts: this.starts,
      resolved,
      cellOf: cellOf2,
      reserves,
      definitions: this.limits,
      ban: this.#banTerms(),
      banningPolicy: this.#banningPolicy(),
      ...this.#sharesTurns && { sharesTurns: this.#sharesTurns },
      ...this.keeps && { keeps: this.keeps },
      relaxed: this.#relaxed
    });
  }
};
function limitsOf(where, options) {
  const { limit, window, limits } = options;
  if (limits === void 0) {
    if (limit === void 0) invalidPolicy(where, "limit", "a limit and a window, or limits", limit);
    try {
      const rate = { limit, window };
      return Object.freeze([defaultLimit(rate, options.consistency !== void 0)]);
    } catch (error) {
      throw error instanceof SluiceError ? new SluiceError(error.code, error.message.replace(/^\w+(?=:)/, where), { cause: error }) : error;
    }
  }
  if (limit !== void 0 || window !== void 0) {
    neverBeside(where, "limits", "limit and window", limits);
  }
  if (!Array.isArray(limits) || limits.length === 0 || limits.length > MAX_LIMITS) {
    invalidPolicy(where, "limits", `an array of 1 to ${MAX_LIMITS} limits`, limits);
  }
  limits.forEach((item, i) => {
    if (typeof item?.resolve !== "function") {
      invalidPolicy(where, `limits[${i}]`, "a limit made by a constructor such as perMinute(20)", item);
    }
    if (!Object.isFrozen(item)) checkCommon(`${where}: limits[${i}]`, item);
  });
  return Object.freeze([...limits]);
}
var MAX_LIMITS = 32;
function refuseEqualNames(where, limits) {
  const seen = /* @__PURE__ */ new Set();
  for (const { name } of limits) {
    if (name === void 0) continue;
    if (seen.has(name.toLowerCase())) invalidPolicy(where, "name", "limit names that differ by more than case", name);
    seen.add(name.toLowerCase());
  }
}
function namesFor(policy, limits, resolutions) {
  const taken = new Set(limits.flatMap(({ name }) => name === void 0 ? [] : [name.toLowerCase()]));
  return limits.map(({ name }, i) => {
    if (name !== void 0) return name;
    const report = resolutions[i].report;
    const kind = hasPermits(report.algorithm) ? report.algorithm : durationText(report.windowMs);
    const base = limits.length === 1 ? policy : `${policy}-${kind}`;
    let free = base;
    for (let n = 2; taken.has(free.toLowerCase()); n++) free = `${base}-${n}`;
    taken.add(free.toLowerCase());
    return free;
  });
}

// packages/core/src/policy/subjects.ts
var NO_CONTEXT = void 0;
var Subjects = class {
  policy;
  #replacement;
  #namesIdentity;
  #areTexts;
  constructor(policy, { namesIdentity, areTexts = false, replacement: replacement2 }) {
    this.policy = policy;
    this.#replacement = replacement2;
    this.#namesIdentity = namesIdentity;
    this.#areTexts = areTexts;
  }
  /** Whether an argument names an identity instead of being a request for key functions. */
  namesIdentity(subject) {
    return this.#namesIdentity(subject);
  }
  /**
   * The identity that an argument names. Its kind is one of any tier: policies that are data may have others by now.
   *
   * @throws SluiceError `INVALID_KEY`, which lists the kinds
   */
  given(subject) {
    const kinds = this.policy.all.flatMap((each) => kindsOf(each, this.#replacement));
    return givenIn(this.policy.where, [...new Set(kinds)], subject);
  }
  /**
   * @param tier the tier, where an identity is given by hand
   * @param priority instead of the policy's own
   * @throws SluiceError `INVALID_KEY`, `INVALID_POLICY`
   */
  resolve(subject, tier, priority) {
    if (!this.#namesIdentity(subject)) {
      const own = this.policy.of(subject, NO_CONTEXT, tier);
      return own instanceof Promise ? own.then((policy) => policy.resolve(subject, NO_CONTEXT, void 0, void 0, priority)) : own.resolve(subject, NO_CONTEXT, void 0, void 0, priority);
    }
    return this.#resolveGiven(subject, tier, priority);
  }
  #resolveGiven(subject, tier, priority) {
    const policy = this.#policyOfIdentity(subject, tier);
    const keys = this.#keysIn(policy, subject);
    const own = ownSubject(subject, keys, this.#areTexts);
    return policy.resolve(own, NO_CONTEXT, keys.identities, this.#planOf(policy, own, keys), priority);
  }
  /** Resolves a request several times: functions for limits and priority are called each time, tier and identities stay. */
  resolver(subject, priority) {
    if (!this.#namesIdentity(subject)) {
      return whenKnown(
        this.policy.of(subject, NO_CONTEXT),
        (policy2) => whenKnown(
          policy2.identitiesOf(subject, NO_CONTEXT),
          (identities) => () => policy2.resolve(subject, NO_CONTEXT, identities, void 0, priority)
        )
      );
    }
    const policy = this.#policyOfIdentity(subject, void 0);
    const keys = this.#keysIn(policy, subject);
    const own = ownSubject(subject, keys, this.#areTexts);
    const plan = this.#planOf(policy, own, keys);
    return () => policy.resolve(own, NO_CONTEXT, keys.identities, plan, priority);
  }
  /** The argument in each tier that it may be counted in: a text or an identity by its kind names no tier. */
  resolveAll(subject) {
    if (this.#namesIdentity(subject)) {
      return allOf(
        this.#keysInAll(subject).map(
          ({ policy, keys }) => inTier(policy, this.#planOf(policy, ownSubject(subject, keys, this.#areTexts), keys), keys.identities)
        )
      );
    }
    const inOwn = (policy) => inTier(policy, policy.plan(subject, NO_CONTEXT), policy.identitiesOf(subject, NO_CONTEXT));
    if (typeof subject === "string") return allOf(this.policy.all.map(inOwn));
    return whenKnown(this.policy.of(subject, NO_CONTEXT), (policy) => allOf([inOwn(policy)]));
  }
  /** Whether a decision in this tier on these identities was one for the argument. */
  isCountedOn(subject, tier, identities) {
    if (this.#namesIdentity(subject)) {
      return this.#keysIn(this.#policyOfIdentity(subject, tier), subject).identities.every(
        (identity) => identities.includes(identity)
      );
    }
    return whenKnown(
      this.policy.of(subject, NO_CONTEXT, tier),
      (policy) => whenKnown(
        policy.identitiesOf(subject, NO_CONTEXT),
        (own) => own.every((identity, i) => identity === identities[i])
      )
    );
  }
  /** The identities to block for a given one. Where addresses are grouped in several ways, the smallest group. */
  toBlock(identity) {
    const range = this.rangeIn(identity);
    if (range !== void 0) return [range];
    return [...new Set(this.#keysInAll(identity).map(({ keys }) => keys.finest))];
  }
  /** The network that an identity given by hand denotes. Undefined where it is none. */
  rangeIn(identity) {
    const { kind, value } = this.given(identity);
    const network2 = kind === "ip" && typeof value === "string" ? networkText(value.trim()) : void 0;
    return network2 === void 0 ? void 0 : startOf2(kind) + network2;
  }
  /** The identities to strike for a given one, with the policy of each tier and the kind in it. */
  toStrike(identity) {
    return this.#keysInAll(identity).map(({ policy, keys: { finest } }) => ({
      policy,
      kind: identityIn(finest).kind,
      text: finest
    }));
  }
  /** The keys of an identity in one tier. */
  #keysIn(policy, identity) {
    const keys = keysOf(policy, this.#replacement, this.given(identity));
    return keys ?? wrongIdentity(policy.where, kindsOf(policy, this.#replacement), identity);
  }
  /** The same in each tier that has limits of its kind. */
  #keysInAll(identity) {
    const given = this.given(identity);
    return this.policy.all.flatMap((policy) => {
      const keys = keysOf(policy, this.#replacement, given);
      return keys ? [{ policy, keys }] : [];
    });
  }
  #policyOfIdentity(subject, tier) {
    const [first2, ...others] = this.policy.all;
    if (tier === void 0 && others.length === 0) return first2;
    return this.policy.of(subject, NO_CONTEXT, String(tier));
  }
  #planOf(policy, own, keys) {
    return whenKnown(policy.plan(own, NO_CONTEXT), keys.planOf);
  }
};
function inTier({ tier }, plan, identities) {
  if (!(plan instanceof Promise) && !(identities instanceof Promise)) return { tier, plan, identities };
  return Promise.all([plan, identities]).then(([plan2, identities2]) => ({ tier, plan: plan2, identities: identities2 }));
}
function allOf(parts2) {
  return parts2.some((part3) => part3 instanceof Promise) ? Promise.all(parts2) : parts2;
}
function ownSubject(subject, { value }, areTexts) {
  return areTexts ? value : subject;
}

// packages/core/src/policy/tiers.ts
var Tiers = class {
  name;
  limits;
  all;
  units;
  keeps;
  ban;
  #byName;
  #tier;
  constructor(options) {
    const { tiers, tier, limit, window, limits, ...rest } = options;
    const where = `policy ${show(options.name ?? "default")}`;
    if (tiers === void 0) neverWithout(where, "tier", "tiers", tier);
    if (limit !== void 0 || window !== void 0 || limits !== void 0) {
      neverBeside(where, "tiers", "limit, window and limits", tiers);
    }
    if (!isRecord(tiers) || Object.keys(tiers).length === 0) {
      invalidPolicy(where, "tiers", "an object of limits by tier, such as { free: [perMinute(20)] }", tiers);
    }
    if (typeof tier !== "function") invalidPolicy(where, "tier", "a function that names the tier", tier);
    this.#tier = tier;
    checkTiersOf(where, options.priority, tiers);
    const shared = sharedLimits(Object.values(tiers));
    const known2 = /* @__PURE__ */ new Map();
    this.#byName = new Map(
      Object.entries(tiers).map(([name, limits2]) => {
        headerName(`${where}: tiers`, "name", name);
        return [name, new Policy({ ...rest, limits: limits2 }, { name, shared, known: known2 })];
      })
    );
    this.all = [...this.#byName.values()];
    this.name = this.all[0].name;
    this.keeps = this.all[0].keeps;
    this.ban = this.all[0].ban;
    this.limits = Object.freeze([...new Set(this.all.flatMap(({ limits: limits2 }) => limits2))]);
    this.units = unitsOf3(where, this.limits);
  }
  get where() {
    return `policy "${this.name}"`;
  }
  /** @throws SluiceError `INVALID_POLICY` for a name that is none of the tiers' */
  of(subject, context, named) {
    return whenKnown(named ?? this.#tier(subject, context), (name) => this.#named(name));
  }
  #named(name) {
    const policy = this.#byName.get(name);
    if (policy) return policy;
    const known2 = [...this.#byName.keys()].map(show).join(" or ");
    return invalidPolicy(this.where, "tier", known2, name);
  }
};
function checkTiersOf(where, priority, tiers) {
  if (typeof priority !== "object" || priority === null) return;
  for (const name of Object.keys(priority)) {
    if (!Object.hasOwn(tiers, name))
      invalidPolicy(where, "priority", `priorities of the tiers ${Object.keys(tiers).map(show).join(", ")}`, name);
  }
}
function choosePolicy(options) {
  return options.tiers === void 0 && options.tier === void 0 ? new Policy(options) : new Tiers(options);
}
function sharedLimits(tiers) {
  const seen = /* @__PURE__ */ new Set();
  const shared = /* @__PURE__ */ new Map();
  for (const limits of tiers) {
    if (!Array.isArray(limits)) continue;
    for (const limit of new Set(limits)) {
      if (seen.has(limit) && !shared.has(limit)) shared.set(limit, shared.size + 1);
      seen.add(limit);
    }
  }
  return shared;
}

// packages/core/src/util/warn-on-rejection.ts
function warnOnRejection(listener, returned, emit) {
  if (returned === void 0 || !isThenable(returned)) return;
  Promise.resolve(returned).catch((error) => warnOfListener(listener, error, emit));
}
function warnOfListener(listener, error, emit = emitWarning) {
  const what = error instanceof Error ? error.message : String(error);
  emit("SLUICE_LISTENER_FAILED", `${listener}: ${what}`);
}

// packages/core/src/limiter/acquire-options.ts
var MAX_WAITERS = 1e4;
function acquireOptions(where, options) {
  knownOptions(`${where}: acquire`, options, ["cost", "maxWait", "signal", "fairBy", "priority", "ageEvery", "size"]);
  const { cost = 1, maxWait, signal, fairBy: client, priority, ageEvery, size = MAX_WAITERS } = options;
  if (signal !== void 0 && !(signal instanceof AbortSignal)) {
    invalidPolicy(where, "signal", "an AbortSignal", signal);
  }
  if (client !== void 0 && (typeof client !== "string" || client === "")) {
    invalidPolicy(where, "fairBy", "a non-empty string", client);
  }
  const maxWaitMs = maxWait === void 0 ? Number.POSITIVE_INFINITY : waitOrNever(where, "maxWait", maxWait);
  if (priority !== void 0) checkPriority(where, priority);
  wholeNumber(where, "size", size, 1);
  return { cost, maxWaitMs, signal, client, priority, size, ageEveryMs: ageEveryMsOf(where, ageEvery) };
}

// packages/core/src/policy/share.ts
function planShare(plan, share2) {
  const scaled = /* @__PURE__ */ new Map();
  for (const limit of plan.resolved) {
    const { limit: units, capacity } = limit;
    scaled.set(limit, Object.freeze({ ...limit, limit: part(units, share2), capacity: part(capacity, share2) }));
  }
  const ofLimit = (limit) => scaled.get(limit);
  return Object.freeze({
    ...plan,
    resolved: plan.resolved.map(ofLimit),
    cells: plan.cells.map(
      (cell) => Object.freeze({
        ...cell,
        id: `${cell.id}*${share2}`,
        params: cell.params.map((value, i) => CELL_KINDS[cell.kernel].isUnits(i) ? part(value, share2) : value),
        limits: cell.limits.map(ofLimit)
      })
    )
  });
}
function reservedShare(plan, reserved, share2) {
  return reserved.map((units, c) => {
    const [{ capacity }] = plan.cells[c].limits;
    return Math.max(0, Math.min(floor(units * share2), capacity - 1));
  });
}
function part(units, share2) {
  return units === 0 ? 0 : Math.max(1, floor(units * share2));
}
function floor(units) {
  return Math.floor(Number(units.toFixed(6)));
}

// packages/core/src/util/drop-oldest.ts
var KEPT2 = 0.8;
function dropOldest(map, max) {
  if (map.size <= max) return;
  const kept = Math.floor(max * KEPT2);
  for (const key of map.keys()) {
    if (map.size <= kept) return;
    map.delete(key);
  }
}

// packages/core/src/limiter/last-known.ts
var MAX_STATES = 1e4;
var LastKnown = class {
  #clock;
  #isStores;
  #known = /* @__PURE__ */ new Map();
  /** @param isStores whether results have the time of this clock */
  constructor(clock, isStores) {
    this.#clock = clock;
    this.#isStores = isStores;
  }
  /** Records a result of the store. Call it with each. */
  record({ plan, identities }, { now, values, offset, block }) {
    if (block) return;
    let at = offset;
    for (let c = 0; c < plan.cells.length; c++) {
      const cell = plan.cells[c];
      let fullest = -1;
      let least = 0.5;
      for (let l = 0; l < cell.limits.length; l++, at += STRIDE) {
        const { capacity: capacity2 } = cell.limits[l];
        const left = values[at] / capacity2;
        if (left < least) {
          least = left;
          fullest = l;
        }
      }
      if (fullest < 0 && this.#known.size === 0) continue;
      const key = keyOf3(plan, cell, identities);
      this.#known.delete(key);
      if (fullest < 0 || CELL_KINDS[cell.kernel].hasPermits) continue;
      const from = at - (cell.limits.length - fullest) * STRIDE;
      const { capacity } = cell.limits[fullest];
      const [remaining2, resetMs] = [values[from], values[from + 2]];
      this.#known.set(key, { at: this.#isStores ? now : this.#clock(), remaining: remaining2, capacity, resetMs });
    }
    dropOldest(this.#known, MAX_STATES);
  }
  forget(plan, identities) {
    for (const cell of plan.cells) this.#known.delete(keyOf3(plan, cell, identities));
  }
  /** Charges a local store, once, for the known use of a decision's cells. `scaled`: the local plan, which may be a share. */
  charge(local, { plan, identities }, scaled) {
    if (this.#known.size === 0) return;
    for (let c = 0; c < plan.cells.length; c++) {
      const cell = plan.cells[c];
      const key = keyOf3(plan, cell, identities);
      const known2 = this.#known.get(key);
      if (!known2) continue;
      this.#known.delete(key);
      if (known2.at + known2.resetMs > this.#clock()) chargeCell(local, { plan: scaled, identities }, c, known2);
    }
  }
};
function keyOf3({ policy }, cell, identities) {
  return `${policy}
${cell.id}
${identities[cell.identity]}`;
}
function chargeCell(local, { plan, identities }, c, { at, remaining: remaining2, capacity, resetMs }) {
  const cell = plan.cells[c];
  const max = Math.min(...cell.limits.map((limit) => limit.capacity));
  const used2 = Math.min(max, Math.ceil((capacity - remaining2) * max / capacity));
  const request = { plan, identities, permitId: "" };
  const costs = (units2) => plan.cells.map((_, i) => i === c ? units2 : 0);
  const before = local.decide({ ...request, op: PEEK, costs: costs(0) });
  const offset = before.offset + STRIDE * plan.cells.slice(0, c).reduce((sum, { limits }) => sum + limits.length, 0);
  const room = Math.min(...cell.limits.map((_, l) => before.values[offset + l * STRIDE]));
  const units = used2 - (max - room);
  if (units <= 0) return;
  const windowMs = cell.limits[0]?.windowMs ?? 0;
  const chargedAt = CELL_KINDS[cell.kernel].chargedAt(cell.params, { windowMs, used: used2, at, resetMs });
  local.decide({ ...request, op: CONSUME, costs: costs(units) }, chargedAt);
}

// packages/core/src/limiter/fallback.ts
var UNAVAILABLE_OPTIONS = ["unavailable"];
var TRY_AGAIN_MS = 2e3;
var LocalFallback = class {
  #mode;
  #share;
  #store;
  #plans = /* @__PURE__ */ new WeakMap();
  #wholes = /* @__PURE__ */ new WeakMap();
  /** @throws SluiceError `INVALID_POLICY` */
  constructor(ofPolicy, store, { unavailable: unavailable2 = {} }) {
    const where = `${ofPolicy}: unavailable`;
    knownOptions(where, unavailable2, ["decide", "share"]);
    const { decide = "local", share: share2 } = unavailable2;
    this.#mode = oneOf(where, "decide", decide, ["local", "allow", "deny"]);
    if (share2 !== void 0 && this.#mode !== "local") neverBeside(where, "share", `decide "${this.#mode}"`, share2);
    if (share2 !== void 0 && !(typeof share2 === "number" && share2 > 0 && share2 <= 1)) {
      invalidPolicy(where, "share", "a number above 0, up to 1", share2);
    }
    this.#share = share2 ?? 1;
    this.#store = store;
  }
  /** The store of this process for outages, if there was any outage so far. */
  get local() {
    return locals.get(this.#store)?.store;
  }
  /** Records a result of the store. Call it with each: during an outage, counting continues from there. */
  record(request, result) {
    if (this.#mode === "local") localBeside(this.#store).known.record(request, result);
  }
  /** The verdict on a request that the store did not decide. */
  decide(request, from) {
    if (this.#mode !== "local") return undecided(request, from, this.#mode === "allow");
    const { store, known: known2 } = localBeside(this.#store);
    const plan = this.#planOf(request.plan);
    const counted = this.#store.lastKnown?.(request);
    if (counted) known2.record(request, counted);
    known2.charge(store, request, plan);
    if (plan === request.plan) return decideLocally(store, request, { ...from, kind: "unavailable", store });
    const reserved = from.reserved && reservedShare(plan, from.reserved, this.#share);
    const needs = request.needs && withReserved(request.costs, request.needs, reserved);
    const { needs: _, ...rest } = request;
    const local = { ...rest, plan, ...needs && { needs } };
    if (isImpossible(local) && !isImpossible(request)) return undecided(request, from, false);
    return decideLocally(store, local, { ...from, kind: "unavailable", store, reserved });
  }
  /** Forgets the charges of this process during an outage. */
  reset(plan, identities) {
    const local = locals.get(this.#store);
    local?.known.forget(plan, identities);
    void local?.store.reset(this.#planOf(plan), identities);
  }
  /** Counts a strike during an outage, which stays in this process. */
  strike(terms, identity, strike) {
    return this.#mode === "local" ? localBeside(this.#store).store.strike?.(terms, identity, strike) : void 0;
  }
  /** Ends a ban that started in this process during an outage. */
  unblock(policy, identity) {
    void locals.get(this.#store)?.store.unblock(policy, identity);
  }
  #planOf(plan) {
    if (this.#share === 1) return plan;
    let scaled = this.#plans.get(plan);
    if (!scaled) {
      scaled = planShare(plan, this.#share);
      this.#plans.set(plan, scaled);
      this.#wholes.set(scaled, plan);
    }
    return scaled;
  }
  /** The plan that a share was made from; the plan itself where it is no share. */
  wholeOf(plan) {
    return this.#wholes.get(plan) ?? plan;
  }
};
function isUnavailable(error) {
  return error instanceof SluiceError && error.code === "STORE_UNAVAILABLE";
}
var locals = /* @__PURE__ */ new WeakMap();
function localBeside(store) {
  let local = locals.get(store);
  if (!local) {
    const clock = store.clock ?? monotonicClock();
    local = { store: memoryStore(store.clock ? { clock } : {}), known: new LastKnown(clock, store.clock !== void 0) };
    locals.set(store, local);
  }
  return local;
}
function decideLocally(store, request, from) {
  return new Verdict(decisionOn(request, store.decide(request), from));
}
function undecided(request, from, allowed) {
  const result = { now: 0, allowed, values: [], offset: 0 };
  const by = { ...from, kind: "unavailable", store: void 0, tryAgainMs: allowed ? 0 : TRY_AGAIN_MS };
  return new Verdict(decisionOn(request, result, by));
}

// packages/core/src/limiter/bans.ts
var BanKeeper = class {
  #name;
  #where;
  #store;
  #fallback;
  #emitter;
  /** The policies by the names of their tiers. */
  #policies;
  #isOfStore;
  /** @throws SluiceError `INVALID_POLICY` for a store without bans */
  constructor(policy, store, fallback, emitter) {
    const { name, where, all } = policy;
    if (typeof store.strike !== "function") invalidPolicy(where, "ban", "a store that has strike()", store);
    this.#name = name;
    this.#where = where;
    this.#store = store;
    this.#fallback = fallback;
    this.#emitter = emitter;
    this.#policies = new Map(all.map((policy2) => [policy2.tier, policy2]));
    this.#isOfStore = all.some(({ ban }) => ban?.terms.scope === EVERY_POLICY);
    if (this.#isOfStore) store.enforceBansOfEveryPolicy?.();
  }
  /** The weight of the strike for a refusal in this tier; undefined where it is no strike. */
  strikeOf(tier, terms, identities) {
    return strikeOf(this.#banOf(tier), terms, identities);
  }
  /** Strikes identities by hand. `kind`: the kind of each; only an identity of the kind that the policy bans is struck. */
  async strike(identities, { weight, reason }) {
    const struck2 = /* @__PURE__ */ new Map();
    for (const { policy, kind, text } of identities) {
      const ban = policy.ban;
      if (kind !== ban.by) {
        throw new SluiceError(
          "INVALID_KEY",
          `${this.#where}: strike: expected an identity of the kind that is banned, ${show(ban.by)}, got one of ${show(kind)}`
        );
      }
      if (ban.covers(text)) struck2.set(text, ban);
    }
    const results = await Promise.all(
      [...struck2].map(
        ([text, ban]) => this.#send(this.#store, { ...ban.terms, identity: 0 }, text, { weight, reason, jitterMs: drawJitter(ban) })
      )
    );
    const barred = results.find((result) => result?.block);
    return barred?.block && banReport(barred.now, barred.block);
  }
  async strikeRefusal(verdict) {
    const isByLimit = verdict.reason === "limited" && verdict.limits.some(({ allowed }) => !allowed);
    if (!isByLimit || !this.#banOf(verdict.tier).countsRefusals) return verdict;
    return barredBy(await this.#strikeFor(verdict), verdict);
  }
  async strikeCaught(verdict, strike) {
    return barredBy(await this.#strikeFor(verdict, strike), verdict);
  }
  async strikeOutcome(verdict) {
    await this.#strikeFor(verdict);
  }
  /** Ends a ban that started during an outage. */
  end(identity) {
    this.#fallback.unblock(this.#name, identity);
    if (this.#isOfStore) this.#fallback.unblock(EVERY_POLICY, identity);
  }
  /** Counts the strike of a verdict's request; undefined where it is no strike. */
  async #strikeFor(verdict, { weight = 1, reason = "" } = {}) {
    const {
      request: { plan, identities },
      by: { store }
    } = verdict[DECISION];
    if (!store || !plan.ban) return void 0;
    const ban = this.#banOf(verdict.tier);
    const identity = identities[plan.ban.identity];
    if (!ban.covers(identity)) return void 0;
    return this.#send(store, plan.ban, identity, { weight, jitterMs: drawJitter(ban), reason });
  }
  /** A strike whose reply is lost may have counted, so it is not sent again. */
  async #send(store, terms, identity, strike) {
    let isLocal = store !== this.#store;
    let result;
    try {
      result = await store.strike?.(terms, identity, strike);
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      isLocal = true;
      result = this.#fallback.strike(terms, identity, strike);
    }
    if (result) this.#emitter.struck(this.#name, identity, strike, result, isLocal);
    return result;
  }
  #banOf(tier) {
    return this.#policies.get(tier).ban;
  }
};
function barredBy(struck2, verdict) {
  if (!struck2?.block) return verdict;
  const { request, by } = verdict[DECISION];
  const result = { now: struck2.now, allowed: false, values: [], offset: 0, block: struck2.block };
  return new Verdict(decisionOn(request, result, by));
}

// packages/core/src/limiter/booked-times.ts
var BookedTimes = class {
  #unitMs;
  #booked = [];
  #units = 0;
  constructor(unitMs) {
    this.#unitMs = unitMs;
  }
  add(booked) {
    this.#booked.splice(this.#booked.findLastIndex(({ at }) => at <= booked.at) + 1, 0, booked);
    this.#units += booked.units;
  }
  /** Removes times that were added, if nothing has changed since. */
  remove(booked) {
    this.#booked.splice(this.#booked.lastIndexOf(booked), 1);
    this.#units -= booked.units;
  }
  /** The earliest start of units that come after `before` others, so that none of them comes before its time. */
  startOf(before, units) {
    const unitMs = this.#unitMs;
    let start = Number.NEGATIVE_INFINITY;
    for (let { index, from } = this.#findUnit(before); index < this.#booked.length && from < before + units; index++) {
      const booked = this.#booked[index];
      const first2 = Math.max(from, before);
      start = Math.max(start, booked.at + (first2 - from) * unitMs - (first2 - before) * unitMs);
      from += booked.units;
    }
    return start;
  }
  takeFirst(units) {
    let left = units;
    for (let [first2] = this.#booked; first2 && left > 0; first2 = this.#booked[0]) {
      const taken = Math.min(left, first2.units);
      left -= taken;
      this.#units -= taken;
      if (taken === first2.units) this.#booked.shift();
      else this.#booked[0] = { at: first2.at + taken * this.#unitMs, units: first2.units - taken };
    }
  }
  takeLast(units) {
    let left = units;
    for (let last = this.#booked.at(-1); last && left > 0; last = this.#booked.at(-1)) {
      const taken = Math.min(left, last.units);
      left -= taken;
      this.#units -= taken;
      if (taken === last.units) this.#booked.pop();
      else this.#booked[this.#booked.length - 1] = { at: last.at, units: last.units - taken };
    }
  }
  /** The index of the booking that holds the unit after `before` others, and the number of units before that booking. */
  #findUnit(before) {
    const booked = this.#booked;
    if (before > this.#units / 2) {
      let from2 = this.#units;
      for (let index = booked.length; index > 0; ) {
        from2 -= booked[--index].units;
        if (from2 <= before) return { index, from: from2 };
      }
    }
    let from = 0;
    for (const [index, { units }] of booked.entries()) {
      if (from + units > before) return { index, from };
      from += units;
    }
    return { index: booked.length, from };
  }
};

// packages/core/src/util/sorted-list.ts
var MAX_IN_ARRAY = 512;
var SortedList = class {
  /** One at least. None of several is empty. */
  #arrays = [[]];
  #isBefore;
  constructor(isBefore2) {
    this.#isBefore = isBefore2;
  }
  get first() {
    return this.#arrays[0]?.[0];
  }
  /** The arrays, in order: reading all items one by one takes three times as long. */
  get arrays() {
    return this.#arrays;
  }
  *[Symbol.iterator]() {
    for (const items of this.#arrays) yield* items;
  }
  add(item) {
    const n = this.#arrayOf(item);
    const items = this.#arrays[n];
    const at = this.#placeIn(items, item);
    if (at === items.length) items.push(item);
    else items.splice(at, 0, item);
    if (items.length > MAX_IN_ARRAY) this.#arrays.splice(n + 1, 0, items.splice(MAX_IN_ARRAY / 2));
  }
  /** Call it with an item of the list. */
  remove(item) {
    const n = this.#arrayOf(item);
    const items = this.#arrays[n];
    removeAt(items, this.#placeIn(items, item));
    if (items.length === 0 && this.#arrays.length > 1) removeAt(this.#arrays, n);
  }
  /** The array that an item is in, or would be in: the first that does not end before it, else the last. */
  #arrayOf(item) {
    const last = this.#arrays.length - 1;
    if (last === 0) return 0;
    return Math.min(
      last,
      countWhile(this.#arrays, (items) => this.#isBefore(items[items.length - 1], item))
    );
  }
  #placeIn(items, item) {
    return countWhile(items, (other) => this.#isBefore(other, item));
  }
};
function countWhile(items, holds) {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = low + high >>> 1;
    if (holds(items[middle])) low = middle + 1;
    else high = middle;
  }
  return low;
}
function removeAt(items, index) {
  if (index === 0) items.shift();
  else items.splice(index, 1);
}

// packages/core/src/limiter/fair-class.ts
var ClientQueue = class {
  client;
  /** Decides between equal clients: the lower number goes first. */
  number;
  turns = [];
  /** Units that its turns need. */
  units = 0;
  /** The start tag of its first turn; without turns, the tag of its next one. */
  start;
  constructor(client, number, start) {
    this.client = client;
    this.number = number;
    this.start = start;
  }
  /** The time at which its first turn began. */
  get since() {
    return this.turns[0].since;
  }
  /** The number of its turns that came before an instant; with `orAt`, also at it. */
  countBefore(since, orAt) {
    return countWhile(this.turns, (turn) => turn.since < since || orAt && turn.since === since);
  }
  indexOf(turn) {
    return this.turns.indexOf(turn, this.countBefore(turn.since, false));
  }
  insert(turn, index) {
    this.turns.splice(index, 0, turn);
    this.units += turn.cost;
  }
  remove(turn, index) {
    removeAt(this.turns, index);
    this.units -= turn.cost;
  }
  placeOf(index) {
    const { since } = this.turns[index];
    return { tag: this.start + this.#unitsBefore(index), since, number: this.number };
  }
  /** Whether its first turn is after a place. */
  isAfter(place) {
    return this.start > place.tag || this.start === place.tag && this.#isAfter(place, this.start, this.since);
  }
  /** The number of its turns that are served up to a place, and their units. */
  upTo(place) {
    const { start, turns, units } = this;
    if (start + units < place.tag) return { count: turns.length, units };
    if (place.tag - start > units / 2) {
      let tag2 = start + units;
      for (let i = turns.length - 1; i >= 0; i--) {
        const { cost, since } = turns[i];
        tag2 -= cost;
        if (!this.#isAfter(place, tag2, since)) return { count: i + 1, units: tag2 + cost - start };
      }
      return { count: 0, units: 0 };
    }
    let tag = start;
    for (let i = 0; i < turns.length; i++) {
      const { cost, since } = turns[i];
      if (this.#isAfter(place, tag, since)) return { count: i, units: tag - start };
      tag += cost;
    }
    return { count: turns.length, units };
  }
  /** Whether a turn of this client is after a place. */
  #isAfter(place, tag, since) {
    if (tag !== place.tag) return tag > place.tag;
    return since > place.since || since === place.since && this.number > place.number;
  }
  #unitsBefore(index) {
    const { turns } = this;
    if (index <= turns.length / 2) return unitsOf4(turns, 0, index);
    return this.units - unitsOf4(turns, index, turns.length);
  }
};
var FairClass = class {
  headStartMs;
  /** Decides between equal classes: the lower number goes first. */
  number;
  #clients = /* @__PURE__ */ new Map();
  /** The clients with turns, in the order in which they are served next. */
  #next = new SortedList((a, b) => a.start < b.start || a.start === b.start && isEarlier(a, b));
  /** The same clients, by the time at which their first turns began. */
  #earliest = new SortedList(isEarlier);
  /** The clients without turns that have had more than their share, the least first. */
  #ahead = new SortedList(
    (a, b) => a.start < b.start || a.start === b.start && a.number < b.number
  );
  #numbers = 0;
  /** The start tag of the last turn that was first: the virtual time of the class. */
  #virtual = 0;
  constructor(headStartMs, number) {
    this.headStartMs = headStartMs;
    this.number = number;
  }
  /** The next turn; undefined where the class is empty. */
  get first() {
    return this.#next.first?.turns[0];
  }
  /** The time at which the earliest of its turns began; infinite where it is empty. */
  get since() {
    return this.#earliest.first?.since ?? Number.POSITIVE_INFINITY;
  }
  sinceWithout(left) {
    const [first2, second] = this.#earliest;
    if (!first2 || first2.turns[0] !== left) return this.since;
    const { since: own = Number.POSITIVE_INFINITY } = first2.turns[1] ?? {};
    return Math.min(own, second?.since ?? Number.POSITIVE_INFINITY);
  }
  /** The turns of a client, in order of arrival. */
  turnsOf(client) {
    return this.#clients.get(client)?.turns ?? [];
  }
  add(turn) {
    const queue = this.#clients.get(turn.client) ?? this.#newClient(turn.client);
    const index = queue.countBefore(turn.since, true);
    if (index > 0) {
      queue.insert(turn, index);
      return;
    }
    this.#takeOut(queue);
    queue.insert(turn, index);
    if (queue.turns.length === 1) queue.start = Math.max(queue.start, this.#virtual);
    this.#putIn(queue);
  }
  /** Removes a turn. If it was not served, the client's next turn takes its place. Returns whether it was here. */
  remove(turn, isServed) {
    const queue = this.#clients.get(turn.client);
    const index = queue?.indexOf(turn) ?? -1;
    if (!queue || index < 0) return false;
    if (index > 0) {
      queue.remove(turn, index);
      return true;
    }
    this.#takeOut(queue);
    queue.remove(turn, index);
    if (isServed) queue.start += turn.cost;
    this.#putIn(queue);
    return true;
  }
  /** The place of a turn in this class. */
  placeOf(turn) {
    const queue = this.#clients.get(turn.client);
    return queue.placeOf(queue.indexOf(turn));
  }
  /** Units that are served up to a place. */
  unitsUpTo(place) {
    let units = 0;
    for (const queues of this.#next.arrays) {
      for (const queue of queues) {
        if (queue.isAfter(place)) return units;
        units += queue.turns.length === 1 ? queue.units : queue.upTo(place).units;
      }
    }
    return units;
  }
  /** The time at which the earliest turn served at a place or later began. */
  sinceFrom(place) {
    let earliest = place.since;
    for (const queue of this.#clients.values()) {
      const next = queue.turns[queue.upTo(place).count];
      if (next && next.since < earliest) earliest = next.since;
    }
    return earliest;
  }
  /** The place of the last-served turn that came before an instant, or with `orAt` at it; undefined without any. */
  lastPlaceBefore(since, orAt) {
    let last;
    for (const queue of this.#clients.values()) {
      const count2 = queue.countBefore(since, orAt);
      if (count2 === 0) continue;
      const place = queue.placeOf(count2 - 1);
      if (!last || isBefore(last, place)) last = place;
    }
    return last;
  }
  #newClient(client) {
    const queue = new ClientQueue(client, this.#numbers++, this.#virtual);
    this.#clients.set(client, queue);
    return queue;
  }
  /** Takes a client out of the lists. Call it before its first turn changes. */
  #takeOut(queue) {
    if (queue.turns.length > 0) {
      this.#next.remove(queue);
      this.#earliest.remove(queue);
    } else if (queue.start > this.#virtual) this.#ahead.remove(queue);
  }
  #putIn(queue) {
    if (queue.turns.length > 0) {
      this.#next.add(queue);
      this.#earliest.add(queue);
    } else this.#ahead.add(queue);
    this.#virtual = this.#next.first?.start ?? this.#virtual;
    for (let { first: first2 } = this.#ahead; first2 && first2.start <= this.#virtual; first2 = this.#ahead.first) {
      this.#ahead.remove(first2);
      this.#clients.delete(first2.client);
    }
  }
};
function isEarlier(a, b) {
  const [first2, second] = [a.since, b.since];
  return first2 < second || first2 === second && a.number < b.number;
}
function isBefore(a, b) {
  if (a.tag !== b.tag) return a.tag < b.tag;
  return a.since < b.since || a.since === b.since && a.number < b.number;
}
function unitsOf4(turns, from, to) {
  let units = 0;
  for (let i = from; i < to; i++) units += turns[i].cost;
  return units;
}

// packages/core/src/limiter/fair-queue.ts
var FairQueue = class {
  #classes = /* @__PURE__ */ new Map();
  /** The classes in the order in which they are served next. */
  #next = new SortedList(
    (a, b) => a.since < b.since || a.since === b.since && a.number < b.number
  );
  #counts = /* @__PURE__ */ new Map();
  /** The clients with the most turns first. */
  #busiest = new SortedList(
    (a, b) => a.turns > b.turns || a.turns === b.turns && a.number < b.number
  );
  #numbers = 0;
  #length = 0;
  #units = 0;
  get first() {
    return this.#next.first?.first;
  }
  get length() {
    return this.#length;
  }
  /** Units that all turns need. */
  get units() {
    return this.#units;
  }
  add(turn) {
    const { client, cost, headStartMs } = turn;
    let own = this.#classes.get(headStartMs);
    if (own) this.#next.remove(own);
    else {
      own = new FairClass(headStartMs, this.#numbers++);
      this.#classes.set(headStartMs, own);
    }
    own.add(turn);
    this.#next.add(own);
    this.#count(client, 1);
    this.#length++;
    this.#units += cost;
  }
  /** Returns whether it was in the queue. */
  remove(turn, isServed) {
    const { client, cost, headStartMs } = turn;
    const own = this.#classes.get(headStartMs);
    if (!own) return false;
    this.#next.remove(own);
    const wasHere = own.remove(turn, isServed);
    if (own.first) this.#next.add(own);
    else this.#classes.delete(headStartMs);
    if (!wasHere) return false;
    this.#count(client, -1);
    this.#length--;
    this.#units -= cost;
    return true;
  }
  /** Up to `max` classes in the order in which they are served, with all turns or without one. */
  classes(max, without) {
    const classes = [];
    for (const one of this.#next) {
      if (classes.length > max) break;
      classes.push({ headStartMs: one.headStartMs, since: one.sinceWithout(without) });
    }
    return classes.filter(({ since }) => since < Number.POSITIVE_INFINITY).sort((a, b) => a.since - b.since).slice(0, max);
  }
  /** Units that are served up to the end of this turn, if no other came. The turn is in the queue. */
  unitsThrough(turn) {
    const own = this.#classes.get(turn.headStartMs);
    const place = own.placeOf(turn);
    let units = own.unitsUpTo(place);
    if (this.#classes.size === 1) return units;
    const since = own.sinceFrom(place);
    for (const other of this.#classes.values()) {
      if (other === own) continue;
      const last = other.lastPlaceBefore(since, other.number < own.number);
      if (last) units += other.unitsUpTo(last);
    }
    return units;
  }
  /**
   * The turn that leaves a full queue for one outside of it: the newest turn of the client with the most turns, in classes that
   * are not above its own. Undefined where the newcomer's client would have as many, or where no client is known.
   */
  displacedBy({ client, headStartMs }) {
    if (client === void 0) return void 0;
    const classes = [...this.#classes.values()].filter((one) => one.headStartMs <= headStartMs);
    const turnsIn = (of) => classes.reduce((sum, one) => sum + one.turnsOf(of).length, 0);
    let largest = turnsIn(client) + 1;
    let from;
    for (const one of this.#busiest) {
      if (one.turns <= largest) break;
      const turns = turnsIn(one.client);
      if (turns > largest) [largest, from] = [turns, one];
    }
    if (!from) return void 0;
    const { client: leaving2 } = from;
    const newest = classes.flatMap((one) => one.turnsOf(leaving2).at(-1) ?? []);
    return newest.reduce((a, b) => b.since >= a.since ? b : a);
  }
  #count(client, change) {
    let count2 = this.#counts.get(client);
    if (count2) this.#busiest.remove(count2);
    else {
      count2 = { client, number: this.#numbers++, turns: 0 };
      this.#counts.set(client, count2);
    }
    count2.turns += change;
    if (count2.turns > 0) this.#busiest.add(count2);
    else this.#counts.delete(client);
  }
};

// packages/core/src/limiter/waiter.ts
var WaitExceeded = class extends SluiceError {
  /** Milliseconds until there would be room if no other request came; undefined if unknown. */
  waitMs;
  /** The last refusal, if there was one. */
  refusal;
  constructor(message, waitMs2, refusal) {
    super("WAIT_EXCEEDED", message);
    this.waitMs = waitMs2;
    this.refusal = refusal;
  }
};
function foreseen(verdict) {
  if (verdict.retryAfterMs === void 0) return Number.POSITIVE_INFINITY;
  if (isBarred(verdict)) return verdict.retryAfterMs;
  return verdict.limits.reduce(
    (longest, { algorithm, retryAfterMs = 0 }) => hasPermits(algorithm) ? longest : Math.max(longest, retryAfterMs),
    0
  );
}
function queueOf({ queues }, { limits }) {
  const i = longestRefusal(limits);
  return i < 0 ? void 0 : queues[i];
}
async function expectedWait(waiter, { limits }, queue, units) {
  let longest = 0;
  for (const [i, { algorithm, limit, windowMs, capacity, retryAfterMs = 0 }] of limits.entries()) {
    if (hasPermits(algorithm) || limit === 0 || units === 0) continue;
    if (waiter.queues[i] !== queue) {
      longest = Math.max(longest, retryAfterMs);
      continue;
    }
    const rounds = Math.floor((units - 1) / capacity);
    const rest = units - rounds * capacity;
    const first2 = await waiter.peek(i, rest);
    longest = Math.max(
      longest,
      (first2.limits[i]?.retryAfterMs ?? 0) + Math.ceil(rounds * capacity * windowMs / limit)
    );
  }
  return longest;
}
function longestWait({ queues }, { limits }, queue, units) {
  let longest = 0;
  for (const [i, { algorithm, limit, windowMs, capacity, retryAfterMs = 0 }] of limits.entries()) {
    if (hasPermits(algorithm) || limit === 0 || units === 0) continue;
    const unitsMs = queues[i] === queue ? (units + capacity) / limit * windowMs + windowMs : 0;
    longest = Math.max(longest, retryAfterMs + unitsMs);
  }
  return longest;
}
function whyTooLong(verdict, maxWaitMs) {
  if (verdict?.reason === "impossible") return "the cost is larger than a limit ever admits";
  if (verdict?.reason === "blocked" && verdict.retryAfterMs === void 0) return "it is blocked for ever";
  return `the wait would exceed ${maxWaitMs} ms`;
}

// packages/core/src/limiter/booked-turns.ts
var SLACK_MS = 5;
function bookingOf({ delayMs, [DECISION]: decision }) {
  if (delayMs === 0 || !isCharged(decision)) return void 0;
  const { plan, identities, costs } = decision.request;
  const { resolved, cellOf: cellOf2, cells } = plan;
  const ids = [];
  let [units, unitMs] = [0, 0];
  let unit;
  for (const [i, { queue, windowMs, limit, unit: counted }] of resolved.entries()) {
    const c = cellOf2[i];
    const { id, identity } = cells[c];
    if (!queue || costs[c] === 0) continue;
    unit ??= counted;
    if (counted !== unit) return void 0;
    ids.push(`${id}
${identities[identity]}`);
    if (windowMs / limit > unitMs) [units, unitMs] = [costs[c], windowMs / limit];
  }
  return units === 0 ? void 0 : { id: ids.join("\n"), inMs: delayMs, units, unitMs };
}
var BookedTurns = class {
  #queues = /* @__PURE__ */ new Map();
  #timing;
  constructor(timing = PROCESS_TIMING) {
    this.#timing = timing;
  }
  /**
   * The time until its exchanged turn, in ms, if no other request came. Where every possible turn comes within `enoughMs`, that is
   * not computed, and the latest possible turn counts.
   */
  delayOf(booking, client, enoughMs) {
    const queue = this.#queues.get(booking.id);
    if (!queue) return booking.inMs;
    const now = this.#timing.now();
    const { turns, times } = queue;
    const turn = turnOf(booking, client, now);
    const added = { at: now + booking.inMs, units: booking.units };
    times.add(added);
    let start = times.startOf(turns.units, turn.cost);
    if (start - now > enoughMs) {
      turns.add(turn);
      start = times.startOf(turns.unitsThrough(turn) - turn.cost, turn.cost);
      turns.remove(turn, false);
    }
    times.remove(added);
    return Math.max(0, Math.ceil(start - now));
  }
  /** Waits for the turn of a verdict, or for one exchanged for it in this process. Rejects with the signal's reason. */
  async wait(verdict, client, signal) {
    const booking = bookingOf(verdict);
    await (booking ? this.#wait(booking, client, signal) : pause(verdict.delayMs, signal, void 0, this.#timing));
  }
  /** Waits for at most `maxWaitMs`, as others may overtake meanwhile. Rejects with `WaitExceeded` after that. */
  async waitWithin(where, verdict, { client, maxWaitMs, signal }) {
    const overtaken = new AbortController();
    const late = () => {
      const message = `${where}: acquire: others came before it, and the wait would exceed maxWait`;
      overtaken.abort(new WaitExceeded(message, void 0, void 0));
    };
    const lateMs = Math.ceil(maxWaitMs) + SLACK_MS;
    const timer = lateMs < LONGEST_TIMER_MS ? this.#timing.setTimeout(late, lateMs) : void 0;
    try {
      await this.wait(verdict, client, signal ? AbortSignal.any([signal, overtaken.signal]) : overtaken.signal);
    } finally {
      this.#timing.clearTimeout(timer);
    }
  }
  /** Resolves when its turn has come. Rejects with the signal's reason when aborted, which frees its units. */
  async #wait(booking, client, signal) {
    signal?.throwIfAborted();
    await new Promise((resolve, reject) => {
      const now = this.#timing.now();
      const turn = turnOf(booking, client, now);
      const queue = this.#queueOf(booking);
      const leave = () => {
        ignoreAbort?.();
        queue.turns.remove(turn, false);
        queue.starts.delete(turn);
        queue.times.takeLast(turn.cost);
        this.#advance(booking.id, queue);
        reject(signal?.reason);
      };
      const ignoreAbort = signal && onAbort(signal, leave);
      queue.starts.set(turn, () => {
        ignoreAbort?.();
        resolve();
      });
      queue.times.add({ at: now + booking.inMs, units: booking.units });
      queue.turns.add(turn);
      this.#advance(booking.id, queue);
    });
  }
  #queueOf({ id, unitMs }) {
    let queue = this.#queues.get(id);
    if (!queue) {
      queue = { turns: new FairQueue(), times: new BookedTimes(unitMs), starts: /* @__PURE__ */ new Map(), timer: void 0 };
      this.#queues.set(id, queue);
    }
    return queue;
  }
  /** Starts the turns that are due, and again when the next one is. */
  #advance(id, queue) {
    this.#timing.clearTimeout(queue.timer);
    const { turns, starts, times } = queue;
    for (let { first: first2 } = turns; first2; first2 = turns.first) {
      const inMs = times.startOf(0, first2.cost) - this.#timing.now();
      if (inMs > 0) {
        queue.timer = this.#timing.setTimeout(
          () => this.#advance(id, queue),
          Math.min(Math.ceil(inMs), LONGEST_TIMER_MS)
        );
        return;
      }
      times.takeFirst(first2.cost);
      turns.remove(first2, true);
      starts.get(first2)?.();
      starts.delete(first2);
    }
    this.#queues.delete(id);
  }
};
function turnOf({ units }, client, since) {
  return { cost: units, headStartMs: 0, since, client, wake: void 0, isDisplaced: false };
}

// packages/core/src/store/kept-charge.ts
function outcomeOf(parts2) {
  if (parts2.length === 0 || parts2.includes("done")) return "done";
  return parts2.includes("done before") ? "done before" : "unknown";
}

// packages/core/src/limiter/charge-changes.ts
function settling(part3, actual, isFree) {
  const { plan, costs } = part3.request;
  const less = [];
  const more = [];
  for (const [c, charged] of costs.entries()) {
    const cell = plan.cells[c];
    const total = actual(unitOf(cell), charged);
    const isMore = isFree && total !== void 0 && total > charged;
    less.push(total === void 0 || isMore ? void 0 : Math.max(0, charged - total));
    more.push(isMore ? isOpen(cell) ? total - charged : 0 : void 0);
  }
  return [...changing(part3, REFUND, less), ...changing(part3, DEBIT, more)];
}
function releasing(part3) {
  return changing(part3, RELEASE, permitsIn(part3));
}
function renewing(part3) {
  return changing(part3, RENEW, permitsIn(part3));
}
function changing({ request, result }, op, units) {
  const takes = units.map((each) => each !== void 0);
  if (!takes.includes(true)) return [];
  const keep = { ...request.keep, takes };
  return [{ ...request, op, costs: units.map((each) => each ?? 0), charge: result, keep }];
}
function permitsIn({ request: { plan, costs } }) {
  return plan.cells.map((cell, c) => hasPermits2(cell) ? costs[c] : void 0);
}
function hasPermits2({ kernel }) {
  return CELL_KINDS[kernel].hasPermits;
}
function isOpen({ limits: [limit] }) {
  return limit?.capacity !== 0;
}
function unitOf({ limits }) {
  return limits[0].unit;
}

// packages/core/src/limiter/meter.ts
import { Transform } from "node:stream";

// packages/core/src/limiter/step-charges.ts
var StepCharges = class {
  /** Units since the last charge, and in a charge under way. */
  open = 0;
  charging = 0;
  /** The first refusal. */
  refusal;
  step;
  #max;
  #charge;
  #charged;
  #isOver = false;
  /**
   * `max`: the smallest capacity of the limits, as a larger charge would be impossible. `charged`: called after each charge, without
   * a verdict where it failed. An error that is no outage is ignored here: it fails the next requests, which show it.
   */
  constructor(step, max, charge2, charged) {
    this.step = Math.min(step, max);
    this.#max = max;
    this.#charge = charge2;
    this.#charged = charged;
  }
  /** Takes units. Charges them once they are a step. */
  add(units) {
    this.open += units;
    if (this.open >= this.step) this.flush();
  }
  /** Charges the rest, and whatever a charge under way leaves. */
  end() {
    this.#isOver = true;
    this.flush();
  }
  /** Charges the units that are open. Those beyond `max` follow, unless there is no room for them anyway. */
  flush() {
    if (this.charging > 0) return;
    const units = Math.min(this.open, this.#max);
    if (units === 0) return;
    this.open = this.refusal ? 0 : this.open - units;
    this.charging = units;
    const failed = () => this.#done(units, void 0);
    try {
      const verdict = this.#charge(units);
      if (verdict instanceof Promise) verdict.then((late) => this.#done(units, late), failed);
      else this.#done(units, verdict);
    } catch {
      failed();
    }
  }
  #done(units, verdict) {
    this.charging = 0;
    if (verdict && !verdict.allowed) this.refusal ??= verdict;
    this.#charged(units, verdict);
    if (this.open > 0 && (this.#isOver || this.open >= this.step)) this.flush();
  }
};

// packages/core/src/limiter/meter.ts
function checkedMeter(policy, unit, options) {
  const where = `${policy.where}: meter`;
  actualUnits(policy, [[unit, 0]], "meter");
  knownOptions(where, options, ["step", "onExhausted"]);
  const { step = 64, onExhausted = "cut" } = options;
  return {
    step: wholeNumber(where, "step", step, 1),
    isCut: oneOf(where, "onExhausted", onExhausted, ["cut", "finish"]) === "cut"
  };
}
var CHARGES_NOTHING = {
  where: "meter",
  isKept: false,
  charged: () => {
  },
  refund: async () => false,
  debit: async () => false,
  exhausted: () => {
  },
  closed: () => {
  }
};
function idleMeter(decision, goesOn) {
  const charge2 = () => {
    throw new Error("an estimate without end is never used up");
  };
  const meter = new UnitMeter(decision, { ...CHARGES_NOTHING, charge: charge2 }, Number.POSITIVE_INFINITY, 1, 1, false);
  if (!goesOn) void meter.close(0);
  return meter;
}
var UnitMeter = class {
  used = 0;
  #decision;
  #by;
  /** Units that the request was charged. */
  #estimate;
  #charges;
  #isCut;
  /** The charged steps, for refunds: the newest last. */
  #steps = [];
  /** Units of all steps that were charged. */
  #stepped = 0;
  /** Units of refused steps from before the last charged one: their window had no room for them, and may be over. */
  #forgiven = 0;
  #isExhausted = false;
  #isEnding = false;
  #closing;
  #wake = [];
  constructor(decision, by, estimate, step, max, isCut) {
    this.#decision = decision;
    this.#by = by;
    this.#estimate = estimate;
    this.#isCut = isCut;
    this.#charges = new StepCharges(
      step,
      max,
      (units) => by.charge(units, this.#isEnding),
      (units, verdict) => this.#charged(units, verdict)
    );
  }
  async add(units) {
    checkCost(this.#by.where, "meter", units);
    if (this.#closing) return false;
    const charges = this.#charges;
    const from = Math.max(this.#estimate, this.used);
    this.used += units;
    if (this.used > from) charges.add(this.used - from);
    while (charges.charging > 0 && charges.open >= charges.step && !this.#closing) await this.#nextCharge();
    return !this.#closing && !(this.#isCut && charges.refusal);
  }
  stream(count2) {
    const end = () => this.end();
    return new TransformStream({
      transform: async (chunk, controller) => {
        const goesOn = await this.add(count2(chunk));
        controller.enqueue(chunk);
        if (goesOn) return;
        controller.terminate();
        await this.end();
      },
      flush: end
    });
  }
  nodeStream(count2) {
    const meter = this;
    let isOver = false;
    return new Transform({
      objectMode: true,
      transform: async function(chunk, _encoding, done) {
        if (isOver) return done();
        try {
          isOver = !await meter.add(count2(chunk));
          this.push(chunk);
          if (isOver) this.push(null);
          done();
        } catch (error) {
          done(error);
        }
      },
      flush: (done) => void meter.end().then(() => done(), done),
      destroy: (error, done) => void meter.end().then(() => done(error), done)
    });
  }
  async end() {
    await this.close();
  }
  /**
   * Ends the meter, once: with the units added so far, or with another total. Resolves to whether that refunded or charged
   * anything.
   */
  close(total) {
    if (this.#closing) return this.#closing.then(() => false);
    this.#closing = this.#close(total);
    return this.#closing;
  }
  async #close(total) {
    const charges = this.#charges;
    const wasHeld = isHeld(this.#decision);
    this.#isEnding = true;
    this.#by.closed();
    if (total !== void 0) charges.open = 0;
    while (charges.charging > 0) await this.#nextCharge();
    const more = (total ?? this.used) - this.#estimate - this.#stepped;
    if (more >= 0 && this.#by.isKept) await this.#by.refund(this.#decision, 0);
    if (more <= 0) return more < 0 && this.#refund(-more, wasHeld);
    if (total !== void 0) return this.#by.debit(more);
    charges.open = more - this.#forgiven;
    charges.end();
    while (charges.charging > 0) await this.#nextCharge();
    return false;
  }
  /** Refunds units, of the newest steps first. */
  async #refund(units, isHeldYet) {
    const refunds = [];
    let left = units;
    for (let step = this.#steps.pop(); step && left > 0; step = this.#steps.pop()) {
      const part3 = Math.min(left, step.units);
      left -= part3;
      refunds.push(this.#by.refund(step.decision, part3));
    }
    if ((left > 0 || this.#by.isKept) && isHeldYet)
      refunds.push(this.#by.refund(this.#decision, Math.min(left, this.#estimate)));
    return (await Promise.all(refunds)).includes(true);
  }
  #charged(units, verdict) {
    if (!verdict || verdict.allowed) this.#stepped += units;
    if (verdict?.allowed) {
      const decision = verdict[DECISION];
      const { open, charging } = this.#charges;
      this.#forgiven = Math.max(this.#estimate, this.used) - this.#estimate - this.#stepped - open - charging;
      this.#steps.push({ decision, units });
      this.#by.charged(decision);
    } else if (verdict && !this.#isExhausted) {
      this.#isExhausted = true;
      this.#by.exhausted(verdict, this.#isCut);
    }
    for (const wake of this.#wake.splice(0)) wake();
  }
  #nextCharge() {
    return new Promise((resolve) => this.#wake.push(resolve));
  }
};

// packages/core/src/limiter/watching.ts
var counter;
function activeCounter() {
  return counter;
}

// packages/core/src/limiter/charge-ledger.ts
var ChargeLedger = class {
  #policy;
  #onRoom;
  #onChange;
  #chargeMore;
  #exhausted;
  #meters = /* @__PURE__ */ new WeakMap();
  /** The resets of keys: earlier charges are not refunded. */
  resets = new Resets();
  /**
   * `onRoom`: called with a request whose limits may have room again. `onChange`: called with the result of a changed charge, where
   * the store returns promises. `chargeMore`: charges further units of a request. `exhausted`: called once for each meter that has
   * used up a limit; `isCut`: whether its stream ends there.
   */
  constructor(policy, onRoom, onChange, chargeMore, exhausted) {
    this.#exhausted = exhausted;
    this.#chargeMore = chargeMore;
    this.#policy = policy;
    this.#onRoom = onRoom;
    this.#onChange = onChange;
  }
  /** Refunds a charge and releases its permits. Resolves to whether this call refunded anything. */
  async refund(decision) {
    if (!isHeld(decision)) return false;
    const { settled } = decision;
    decision.settled = REFUNDED;
    const meters = [...this.#meters.get(decision)?.values() ?? []].map((meter) => meter.close(0));
    const refunds = this.#reduce(decision, (unit) => settled?.has(unit) ? void 0 : 0);
    return (await Promise.all([refunds, ...meters])).includes(true);
  }
  /**
   * Replaces the charged units with the actual ones, each unit once. Resolves to whether anything was refunded or charged.
   *
   * @throws SluiceError `INVALID_COST`
   */
  async settle(decision, actual) {
    const units = entriesIn2(actual);
    if (units) return this.#settle(decision, actualUnits(this.#policy, units), true);
    const requests = checkActualCost(this.#policy.where, actual, maxToSettle(decision));
    return this.#settle(decision, /* @__PURE__ */ new Map([["requests", requests]]), false);
  }
  /** Replaces the charged bytes with those received, once; never with more than were charged. */
  async settleBytes(decision, received) {
    return this.#settle(decision, /* @__PURE__ */ new Map([["content-bytes", received]]), false);
  }
  /**
   * A meter for units of a decided request. `goesOn`: whether it proceeds, and whether it does so beyond its limits.
   *
   * @throws SluiceError `INVALID_COST`, `INVALID_POLICY`
   */
  meter(decision, unit, options, goesOn) {
    const { step, isCut } = checkedMeter(this.#policy, unit, options);
    const { plan, costs } = decision.request;
    const { units, cells } = plan;
    const counting = cells.filter((_, c) => units[c] === unit).flatMap(({ limits }) => limits);
    const isSettled = decision.settled === REFUNDED || decision.settled?.has(unit);
    if (!goesOn || isSettled || counting.length === 0 || decision.by.store === void 0)
      return idleMeter(decision, goesOn !== false && !isSettled);
    const meters = this.#meters.get(decision) ?? /* @__PURE__ */ new Map();
    this.#meters.set(decision, meters);
    if (meters.has(unit)) wrongPolicy(`${this.#policy.where}: meter: expected one for each unit of a verdict`);
    const meter = new UnitMeter(
      decision,
      {
        where: this.#policy.where,
        isKept: isHeld(decision) && decision.result.id !== void 0,
        charge: (more, isRest) => this.#chargeMore(decision, unit, more, isRest ? CHARGE : CONSUME),
        exhausted: this.#exhausted,
        charged: ({ request }) => activeCounter()?.changedCharge(request),
        refund: (charge2, back) => this.#reduce(charge2, (each, charged) => each === unit ? charged - back : void 0),
        debit: (more) => this.#debit(decision, (each) => each === unit ? more : 0),
        closed: () => {
          if (decision.settled !== REFUNDED) decision.settled = /* @__PURE__ */ new Set([...decision.settled ?? [], unit]);
        }
      },
      isHeld(decision) ? Math.max(0, ...costs.filter((_, c) => units[c] === unit)) : 0,
      step,
      Math.min(...counting.map(({ capacity }) => Math.max(1, capacity))),
      isCut && goesOn !== "beyond"
    );
    meters.set(unit, meter);
    return meter;
  }
  async release(decision) {
    const { request } = decision;
    if (!isHeld(decision) || !request.permitId) return;
    const own = keptBy(decision);
    if (own) await this.#changeOwn(decision, releasing(own));
    else if (await this.#send(decision, { ...request, op: RELEASE })) this.#onRoom(request);
  }
  async renew(decision) {
    const { request } = decision;
    if (!isHeld(decision) || !request.permitId) return;
    const own = keptBy(decision);
    if (own) await this.#changeOwn(decision, renewing(own));
    else await this.#send(decision, { ...request, op: RENEW });
  }
  /** Replaces the charge of each unit that is not settled yet. `isFree`: whether more than was charged counts. */
  async #settle(decision, actual, isFree) {
    const { settled } = decision;
    if (!isHeld(decision)) return false;
    const open = new Map([...actual].filter(([unit]) => !settled?.has(unit)));
    const metered = [...this.#meters.get(decision) ?? []].flatMap(([unit, meter]) => {
      const total = open.get(unit);
      return total !== void 0 && open.delete(unit) ? [meter.close(total)] : [];
    });
    decision.settled = /* @__PURE__ */ new Set([...decision.settled ?? [], ...open.keys()]);
    const done = await Promise.all([
      ...metered,
      this.#reduce(decision, (unit) => open.get(unit), isFree),
      isFree && !keptBy(decision) && this.#debit(decision, (unit, charged) => (open.get(unit) ?? 0) - charged)
    ]);
    return done.includes(true);
  }
  /**
   * Makes changes of a kept charge.
   *
   * @throws SluiceError `STORE_UNAVAILABLE`, once all others are made
   */
  async changeKept(store, requests) {
    const changes = await Promise.allSettled(requests.map(async (request) => this.#change(store, request)));
    const failure = changes.find((change) => change.status === "rejected");
    if (failure) throw failure.reason;
    return outcomeOf(changes.map((change) => change.value));
  }
  async #change(store, request) {
    const { outcome } = await store.decide(request);
    if (outcome !== "done") return outcome;
    activeCounter()?.changedCharge(request);
    if (request.op === REFUND || request.op === RELEASE) this.#onRoom(request);
    return outcome;
  }
  /** Changes the kept charge of a verdict. Resolves to whether this call changed it; false while the store is away. */
  async #changeOwn({ by }, requests) {
    try {
      return requests.length > 0 && await this.changeKept(by.store, requests) === "done";
    } catch (error) {
      if (isUnavailable(error)) return false;
      throw error;
    }
  }
  /** Charges units per cell, whatever room there is. */
  async #debit(decision, more) {
    const { request } = decision;
    const { units, cells } = request.plan;
    const costs = request.costs.map((charged, c) => {
      const refusesAll = cells[c]?.limits[0]?.capacity === 0;
      return refusesAll ? 0 : Math.max(0, more(units[c], charged));
    });
    return !takesNothing(costs) && this.#send(decision, { ...request, op: DEBIT, costs, permitId: "" });
  }
  /** Refunds the excess over `actual` per cell; nothing where that is undefined. Of a kept charge, `isFree` charges more, too. */
  async #reduce(decision, actual, isFree = false) {
    const own = keptBy(decision);
    if (own) return this.#changeOwn(decision, settling(own, actual, isFree));
    const { request } = decision;
    const { units, cells } = request.plan;
    const costs = request.costs.map((charged, c) => {
      const left = actual(units[c], charged) ?? charged;
      return this.#isForgotten(decision, cells[c]) ? 0 : Math.max(0, charged - left);
    });
    if (takesNothing(costs)) return false;
    if (!await this.#send(decision, { ...request, op: REFUND, costs })) return false;
    this.#onRoom(request);
    return true;
  }
  #isForgotten({ request, by: { resets, tier } }, { kernel, identity }) {
    if (CELL_KINDS[kernel].hasPermits) return false;
    return this.resets.wasResetAfter(resets, tier, request.identities[identity]);
  }
  /**
   * Sends a change of a charge to the store that made it, once: a store that fails may still have applied it.
   * Resolves to whether it was certainly applied; if not, the charge expires by itself.
   */
  async #send({ by, result }, request) {
    const store = by.store;
    try {
      const decided2 = store.decide({ ...request, charge: result, keep: void 0 });
      if (decided2 instanceof Promise) this.#onChange(store, request, await decided2);
      activeCounter()?.changedCharge(request);
      return true;
    } catch (error) {
      if (isUnavailable(error)) return false;
      throw error;
    }
  }
};
function keptBy({ request, result }) {
  const { id } = result;
  return id === void 0 ? void 0 : { request: { ...request, keep: { ...request.keep, id } }, result };
}

// packages/core/src/limiter/kept-charges.ts
var KeptCharges = class {
  #policy;
  #stores;
  #ledger;
  /** `stores`: those that may have kept a charge, in this order: this process alone during an outage, and the limiter's own. */
  constructor(policy, stores2, ledger) {
    this.#policy = policy;
    this.#stores = stores2;
    this.#ledger = ledger;
  }
  /** @throws SluiceError `INVALID_COST`, `STORE_UNAVAILABLE` */
  async settle(id, actual) {
    const units = entriesIn2(actual);
    const named = units && actualUnits(this.#policy, units);
    return this.#change(id, (parts2) => {
      const settled = named ?? /* @__PURE__ */ new Map([["requests", checkActualCost(this.#policy.where, actual, maxToSettle2(parts2))]]);
      return parts2.map((part3) => settling(part3, (unit) => settled.get(unit), named !== void 0));
    });
  }
  /** @throws SluiceError `STORE_UNAVAILABLE` */
  refund(id) {
    return this.#change(id, (parts2) => parts2.map((part3) => settling(part3, () => 0, false)));
  }
  /** @throws SluiceError `STORE_UNAVAILABLE` */
  release(id) {
    return this.#change(id, (parts2) => parts2.map(releasing));
  }
  /** @throws SluiceError `STORE_UNAVAILABLE` */
  renew(id) {
    return this.#change(id, (parts2) => parts2.map(renewing));
  }
  async #change(id, changes) {
    for (const storeOf of this.#stores) {
      const store = storeOf();
      const parts2 = await store?.keptCharge?.(this.#policy.name, id) ?? [];
      if (store && parts2.length > 0) return this.#ledger.changeKept(store, changes(parts2.map(readable)).flat());
    }
    return "unknown";
  }
};
function maxToSettle2(parts2) {
  const charged = parts2.flatMap(
    ({ request: { plan, costs } }) => plan.cells.map((cell, c) => [unitOf(cell), costs[c]])
  );
  const requests = charged.filter(([unit]) => unit === "requests");
  return Math.max(...(requests.length > 0 ? requests : [["", 1], ...charged]).map(([, units]) => units));
}
var readablePlans = /* @__PURE__ */ new WeakMap();
function readable(part3) {
  const { plan } = part3.request;
  if ("cellOf" in plan) return part3;
  let whole3 = readablePlans.get(plan);
  if (!whole3) {
    const units = plan.cells.map(unitOf);
    const takesOnes = !units.some(isOwnUnit);
    const own = {
      ...plan,
      cellOf: plan.cells.map((_, c) => c),
      units,
      takesOnes
    };
    whole3 = Object.freeze(own);
    readablePlans.set(plan, whole3);
  }
  return { ...part3, request: { ...part3.request, plan: whole3 } };
}

// packages/core/src/limiter/shared-turns.ts
var RENEW_SHARE = 0.4;
var GATHER_MS = 10;
var MAX_CLASSES = 16;
var SharedTurns = class {
  /** Identifies this limiter: each limiter of a process has its own queues. */
  #process = crypto.randomUUID().slice(-12);
  #queues = /* @__PURE__ */ new Map();
  #timer;
  /** Takes a change of a queue of this process: it has gained or lost a turn. */
  changed(id, queue, report) {
    let shared = this.#queues.get(id);
    if (!shared) {
      if (queue.length === 0) return;
      shared = { queue, report, reported: textOf([]), reportedAt: 0, messages: 0, isDue: false };
      this.#queues.set(id, shared);
      this.#timer ??= setInterval(() => this.#renew(), report.ttlMs * RENEW_SHARE).unref();
    }
    shared.queue = queue;
    this.#catchUp(id, shared);
  }
  /** The turn that the head of its queue sends with its decision. */
  headTurn(queue, turn) {
    const ifRefused = queue.classes(MAX_CLASSES);
    const own = ifRefused.find(({ headStartMs }) => headStartMs === turn.headStartMs);
    return {
      process: this.#process,
      class: own ?? { headStartMs: turn.headStartMs, since: turn.since },
      ifRefused,
      ifAdmitted: queue.classes(MAX_CLASSES, turn)
    };
  }
  /** Takes the start of a turn's decision. Returns a function to call with whether it was admitted, undefined if unknown. */
  begin(id, { ifRefused, ifAdmitted }) {
    const shared = this.#queues.get(id);
    if (!shared) return () => {
    };
    const messages = shared.messages;
    shared.reported = textOf(ifRefused);
    shared.reportedAt = performance.now();
    return (isAdmitted) => {
      if (shared.messages === messages) {
        shared.reported = isAdmitted === void 0 ? void 0 : textOf(isAdmitted ? ifAdmitted : ifRefused);
      }
      this.#catchUp(id, shared);
    };
  }
  #catchUp(id, shared) {
    if (shared.isDue) return;
    if (shared.reported === textOf(shared.queue.classes(MAX_CLASSES))) {
      if (shared.queue.length === 0) this.#forget(id, shared);
      return;
    }
    shared.isDue = true;
    const inMs = Math.max(0, shared.reportedAt + GATHER_MS - performance.now());
    setTimeout(() => {
      shared.isDue = false;
      const classes = shared.queue.classes(MAX_CLASSES);
      if (shared.reported !== textOf(classes)) this.#send(shared, classes);
      if (classes.length === 0) this.#forget(id, shared);
    }, inMs).unref();
  }
  #forget(id, shared) {
    if (this.#queues.get(id) === shared) this.#queues.delete(id);
    if (this.#queues.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = void 0;
  }
  #send(shared, classes) {
    shared.reported = textOf(classes);
    shared.reportedAt = performance.now();
    shared.messages++;
    shared.report.send(this.#process, classes).catch(() => {
      shared.reported = void 0;
    });
  }
  #renew() {
    const now = performance.now();
    for (const [id, shared] of this.#queues) {
      const classes = shared.queue.classes(MAX_CLASSES);
      if (classes.length === 0) this.#catchUp(id, shared);
      else if (now - shared.reportedAt > shared.report.ttlMs * RENEW_SHARE / 2) this.#send(shared, classes);
    }
  }
};
function textOf(classes) {
  return classes.map(({ headStartMs, since }) => `${headStartMs} ${since}`).join();
}

// packages/core/src/limiter/wait-queue.ts
var POLL_MS = 50;
var WOKEN_AT_ONCE = 500;
var WaitQueues = class {
  #queues = /* @__PURE__ */ new Map();
  #shared = new SharedTurns();
  #polling;
  /** The decisions under way, by the queues of their limits. */
  #pending = /* @__PURE__ */ new Map();
  timing;
  constructor(timing = PROCESS_TIMING) {
    this.timing = timing;
    this.#polling = new Polling(timing);
  }
  /** The number of queues. */
  get size() {
    return this.#queues.size;
  }
  /** Whether one of these queues has a waiter. */
  hasAny(queues) {
    return queues.some((id) => this.#queues.has(id));
  }
  /** Takes the news of possible room after a refund, a release or a reset, in these queues or all. The first of each tries again. */
  wake(queues) {
    for (const id of queues ?? this.#pending.keys()) {
      for (const decision of this.#pending.get(id) ?? []) decision.isOutdated = true;
    }
    for (const id of queues ?? this.#queues.keys()) this.#queues.get(id)?.first?.wake?.();
  }
  /** Records that a decision on limits of these queues is under way. */
  begin(queues) {
    const decision = { isOutdated: false };
    for (const id of queues) {
      const decisions2 = this.#pending.get(id);
      if (decisions2) decisions2.add(decision);
      else this.#pending.set(id, /* @__PURE__ */ new Set([decision]));
    }
    return decision;
  }
  /** Records the end of that decision. */
  end(queues, decision) {
    for (const id of queues) {
      const decisions2 = this.#pending.get(id);
      if (decisions2?.delete(decision) && decisions2.size === 0) this.#pending.delete(id);
    }
  }
  /** Requests a decision for the first of a queue. */
  async decide(waiter, id, queue, turn) {
    if (!waiter.reportOf || waiter.isPeek) return waiter.decide();
    const head = this.#shared.headTurn(queue, turn);
    const finish = this.#shared.begin(id, head);
    try {
      const verdict = await waiter.decide(head, waiter.queues.indexOf(id));
      finish(verdict.kind === "decided" ? verdict.allowed : void 0);
      return verdict;
    } catch (error) {
      finish(void 0);
      throw error;
    }
  }
  /** Waits for a turn to be woken, or for `ms`. `forPermits`: all waiters for permits are also woken together, at intervals. */
  async sleep(turn, ms, signal, forPermits) {
    const polling = forPermits ? this.#polling : void 0;
    const onWaker = (wake) => {
      turn.wake = wake;
      polling?.add(wake);
      return () => {
        turn.wake = void 0;
        polling?.delete(wake);
      };
    };
    await pause(ms, signal, onWaker, this.timing);
  }
  /** Whether the first of a queue came before a turn. */
  isLedBefore(id, turn) {
    const first2 = this.#queues.get(id)?.first;
    return first2 !== void 0 && first2.since < turn.since;
  }
  join(id, turn, waiter) {
    let queue = this.#queues.get(id);
    if (!queue) {
      queue = new FairQueue();
      this.#queues.set(id, queue);
    }
    queue.add(turn);
    this.#report(id, queue, waiter);
    return queue;
  }
  /** Makes room in a full queue for a turn. Returns whether there is. */
  makeRoom(id, size, newcomer) {
    const queue = this.#queues.get(id);
    if (!queue || queue.length < size) return true;
    const displaced = queue.displacedBy(newcomer);
    if (displaced) this.#displace(queue, displaced);
    return displaced !== void 0;
  }
  /** Units that all waiters in a queue need. */
  unitsIn(id) {
    return this.#queues.get(id)?.units ?? 0;
  }
  #displace(queue, turn) {
    const wasFirst = queue.first === turn;
    queue.remove(turn, false);
    turn.isDisplaced = true;
    turn.wake?.();
    if (wasFirst) queue.first?.wake?.();
  }
  leave(id, left, turn, isServed, waiter) {
    this.#remove(id, turn, isServed);
    this.#report(id, left, waiter);
  }
  #remove(id, turn, isServed) {
    const queue = this.#queues.get(id);
    const wasFirst = queue?.first === turn;
    if (!queue?.remove(turn, isServed)) return;
    if (queue.length === 0) this.#queues.delete(id);
    else if (wasFirst) queue.first?.wake?.();
  }
  /** Reports a queue to other processes after a change. */
  #report(id, changed, { queues, reportOf: reportOf2 }) {
    if (reportOf2) this.#shared.changed(id, changed, reportOf2(queues.indexOf(id)));
  }
};
var Polling = class {
  #wakers = /* @__PURE__ */ new Set();
  #timer;
  #timing;
  constructor(timing) {
    this.#timing = timing;
  }
  add(wake) {
    this.#wakers.add(wake);
    this.#timer ??= this.#timing.setTimeout(() => {
      this.#timer = void 0;
      this.#wake([...this.#wakers]);
    }, POLL_MS);
  }
  delete(wake) {
    this.#wakers.delete(wake);
    if (this.#wakers.size > 0) return;
    this.#timing.clearTimeout(this.#timer);
    this.#timer = void 0;
  }
  #wake(wakers) {
    for (const wake of wakers.slice(0, WOKEN_AT_ONCE)) if (this.#wakers.has(wake)) wake();
    if (wakers.length > WOKEN_AT_ONCE) setImmediate(() => this.#wake(wakers.slice(WOKEN_AT_ONCE)));
  }
};

// packages/core/src/limiter/waiting.ts
var MAX_LOOKS = 20;
var Waiting = class {
  #queues;
  #where;
  #waiter;
  #options;
  #deadline;
  #turn;
  /** The id of its current queue. */
  #id;
  #hasJoined = false;
  /** The last refusal, while it is current. */
  #refusal;
  #isWaiting = false;
  #hasWaited;
  constructor(queues, where, waiter, options) {
    const { maxWaitMs, headStartMs = 0, client, refusal } = options;
    const now = queues.timing.now();
    this.#queues = queues;
    this.#where = where;
    this.#waiter = waiter;
    this.#options = options;
    this.#deadline = now + maxWaitMs;
    this.#turn = { cost: 0, headStartMs, since: now - headStartMs, client, wake: void 0, isDisplaced: false };
    this.#refusal = refusal;
    this.#id = (refusal && queueOf(waiter, refusal)) ?? waiter.queues.find((id) => queues.hasAny([id])) ?? waiter.queues[0];
    this.#turn.cost = this.#unitsIn(this.#id);
  }
  /** The units that it takes from the limit of a queue. */
  #unitsIn(id) {
    return this.#waiter.units[this.#waiter.queues.indexOf(id)];
  }
  get #leftMs() {
    return this.#deadline - this.#queues.timing.now();
  }
  /**
   * Waits until admitted. A queueing limit (`leakyBucket` with `queue`) admits at once; the caller then waits for `delayMs`.
   *
   * @throws WaitExceeded as soon as that is foreseeable; the signal's reason when aborted, with nothing charged
   */
  async admission() {
    const { signal, size = Number.POSITIVE_INFINITY } = this.#options;
    const turn = this.#turn;
    signal?.throwIfAborted();
    if (!this.#queues.makeRoom(this.#id, size, turn)) {
      throw await this.#noRoom(this.#queues.unitsIn(this.#id) + turn.cost);
    }
    let queue = this.#join(this.#id);
    let isServed = false;
    try {
      for (; ; ) {
        if (turn.isDisplaced) {
          this.#refusal ??= this.#options.refusal;
          throw await this.#noRoom(queue.units + turn.cost);
        }
        if (queue.first !== turn) {
          await this.#standBehind(queue);
          this.#refusal = void 0;
          continue;
        }
        const { queues } = this.#waiter;
        let next = queues.find((id) => id !== this.#id && this.#queues.isLedBefore(id, turn));
        if (next === void 0) {
          const pending = this.#queues.begin(queues);
          let verdict;
          try {
            verdict = this.#refusal ?? await this.#queues.decide(this.#waiter, this.#id, queue, turn);
          } finally {
            this.#queues.end(queues, pending);
          }
          this.#refusal = void 0;
          if (verdict.allowed) {
            const tooLate = this.#tooLate(verdict);
            if (tooLate) throw await tooLate;
            isServed = true;
            return verdict;
          }
          if (pending.isOutdated) continue;
          const waitMs2 = this.#checkedWait(verdict);
          next = queueOf(this.#waiter, verdict);
          if (next === void 0 || next === this.#id) {
            await (waitMs2 > 0 ? this.#sleep(waitMs2) : this.#sleepForPermits(queue));
            continue;
          }
          this.#refusal = verdict;
        }
        this.#queues.leave(this.#id, queue, turn, false, this.#waiter);
        queue = this.#join(next);
      }
    } finally {
      this.#queues.leave(this.#id, queue, turn, isServed, this.#waiter);
      this.#hasWaited?.(isServed ? "admitted" : signal?.aborted ? "left" : "refused");
    }
  }
  #join(id) {
    this.#id = id;
    this.#turn.cost = this.#unitsIn(id);
    this.#hasJoined = true;
    return this.#queues.join(id, this.#turn, this.#waiter);
  }
  /** Waits behind others, after a check whether it can be admitted in time. */
  async #standBehind(queue) {
    if (!this.#hasJoined) {
      if (this.#leftMs <= 0) throw this.#tooLong(this.#options.refusal);
      await this.#sleep(this.#leftMs);
      return;
    }
    this.#hasJoined = false;
    const waiter = this.#waiter;
    const last = this.#refusal ?? await waiter.peek();
    if (this.#isHopeless(last)) throw this.#tooLong(last);
    if (longestWait(waiter, last, this.#id, queue.units) <= this.#leftMs) return;
    const waitMs2 = await expectedWait(waiter, last, this.#id, queue.unitsThrough(this.#turn));
    if (waitMs2 > this.#leftMs) throw this.#tooLong(last, waitMs2);
  }
  /** The duration of a refusal in ms; 0 where only permits are missing. */
  #checkedWait(refusal) {
    const waitMs2 = foreseen(refusal);
    if (this.#isHopeless(refusal) || waitMs2 > this.#leftMs || this.#leftMs <= 0) throw this.#tooLong(refusal);
    return waitMs2;
  }
  /** Refunds an admission that comes too late, and resolves to the reason; undefined where it is in time. */
  #tooLate(verdict) {
    const { signal } = this.#options;
    const leftMs = Math.max(0, this.#leftMs);
    const delayMs = this.#waiter.delayOf(verdict, leftMs);
    if (!signal?.aborted && delayMs <= leftMs) return void 0;
    return this.#waiter.refund(verdict).then(() => signal?.aborted ? signal.reason : this.#tooLong(verdict, delayMs));
  }
  /**
   * Whether a refusal never ends: an impossible cost, a block for ever, or an outage unless the caller waits for the store. That
   * exceeds even an infinite `maxWait`.
   */
  #isHopeless({ reason, retryAfterMs }) {
    return retryAfterMs === void 0 || reason === "unavailable" && !this.#options.waitsForStore;
  }
  #tooLong(refusal, waitMs2, why = whyTooLong(refusal, this.#options.maxWaitMs)) {
    return new WaitExceeded(`${this.#where}: acquire: ${why}`, waitMs2, refusal);
  }
  async #noRoom(units) {
    const last = this.#refusal ?? await this.#waiter.peek();
    const waitMs2 = await expectedWait(this.#waiter, last, this.#id, units);
    return this.#tooLong(last, waitMs2, `${this.#options.size} calls wait already`);
  }
  async #sleep(ms, forPermits = false) {
    if (!this.#isWaiting) this.#hasWaited = this.#waiter.waits?.();
    this.#isWaiting = true;
    await this.#queues.sleep(this.#turn, ms, this.#options.signal, forPermits);
  }
  /** Waits until permits may have been released. */
  async #sleepForPermits(queue) {
    const { queues, mayHavePermits } = this.#waiter;
    const look = this.#queues.begin(queues);
    const isOver = () => look.isOutdated || this.#turn.isDisplaced || queue.first !== this.#turn || this.#leftMs <= 0;
    try {
      for (let looks = 0; looks < MAX_LOOKS; looks++) {
        await this.#sleep(Math.max(1, this.#leftMs), true);
        if (isOver() || !mayHavePermits || await mayHavePermits() || isOver()) return;
      }
    } finally {
      this.#queues.end(queues, look);
    }
  }
};

// packages/core/src/limiter/engine.ts
var permits = 0;
var holder = crypto.randomUUID().slice(-12);
var Engine = class {
  policy;
  store;
  emitter;
  charges;
  /** Undefined where the policy keeps no charges. */
  kept;
  /** Undefined where the policy has no `ban`. */
  bans;
  /** The turns that queueing limits have booked. */
  booked;
  /** The time of its waits. */
  timing;
  #fallback;
  #queues;
  #isStoreAsync = false;
  /** The last decision's: the next one is nearly always the same. */
  #by;
  /** @throws SluiceError `INVALID_POLICY` */
  constructor(policy, store, unavailable2, emitter, timing = PROCESS_TIMING) {
    const { where } = policy;
    refusePolluted(where, DECISION_OPTIONS);
    if (typeof store?.decide !== "function") {
      invalidPolicy(where, "store", "memoryStore() or redisStore(client)", store);
    }
    if (policy.keeps && !store.keptCharge) {
      invalidPolicy(where, "charges", "none on this store, which keeps no charges", policy.keeps);
    }
    this.policy = policy;
    this.store = store;
    this.emitter = emitter;
    this.timing = timing;
    this.booked = new BookedTurns(timing);
    this.#queues = new WaitQueues(timing);
    this.#fallback = new LocalFallback(where, store, unavailable2);
    this.charges = new ChargeLedger(
      policy,
      ({ plan, identities }) => this.#queues.wake(queuesOf(plan, identities)),
      (by, request, result) => {
        if (by === store) this.#fallback.record(request, result);
      },
      (decision, unit, units, op) => this.chargeMore(decision, unit, units, op),
      (refusal, isCut) => this.conclude(isCut ? refusal : served(refusal), isCut)
    );
    this.kept = policy.keeps && new KeptCharges(policy, [() => this.#fallback.local, () => store], this.charges);
    this.bans = policy.ban && new BanKeeper(policy, store, this.#fallback, emitter);
  }
  /** Decides, and charges every limit if all have room. `op` replaces the policy's own, for a peek. */
  decide(resolved, cost, options, op) {
    const { policy, plan, identities, values, priority } = resolved;
    if (cost === 1 && plan.isPlain && options.turn === void 0) {
      const fresh = options.fresh === true;
      return this.#decideOn(
        { op: op ?? policy.consume, plan, identities, values, costs: plan.ones, permitId: "", fresh },
        this.#decidedBy(policy.tier, priority, void 0)
      );
    }
    return this.#decideInFull(resolved, cost, options, op);
  }
  #decideInFull({ policy, plan, identities, values, priority }, cost, options, op) {
    const costs = cost === 1 && plan.takesOnes ? plan.ones : costsOf(policy.where, plan, cost, options, op);
    const reserved = plan.reserves && reservedFor(plan, plan.reserves, priority);
    const needs = reserved || !plan.takesOnes ? needsOf(plan, cost, costs, reserved) : void 0;
    const request = {
      op: op ?? (costs !== plan.ones && isPeek(cost, needs ?? costs) ? PEEK : policy.consume),
      plan,
      identities,
      values,
      costs,
      permitId: plan.hasPermits ? `${holder}.${(permits++).toString(36)}` : "",
      fresh: options.fresh === true
    };
    const { turn } = options;
    const strike = plan.ban && options.strikes !== false && request.op !== PEEK ? this.bans?.strikeOf(policy.tier, plan.ban, identities) : void 0;
    if (needs) request.needs = needs;
    if (turn) request.turn = turn;
    if (strike !== void 0) request.strike = strike;
    if (plan.keeps && request.op !== PEEK) request.keep = plan.keeps;
    const verdict = this.#decideOn(request, this.#decidedBy(policy.tier, priority, reserved));
    return strike === void 0 || !this.emitter.hasStrikeListeners ? verdict : this.#emitStrike(request, verdict);
  }
  #decideOn(request, by) {
    return isWatched() && this.emitter.isMeasured ? this.#measure(request, by) : this.#decideByStore(request, by);
  }
  /** A separate method, because it makes a closure: V8 would allocate for that in each call of `decide`. */
  #emitStrike(request, verdict) {
    return whenKnown(verdict, (known2) => {
      this.emitter.struckByRefusal(request, known2);
      return known2;
    });
  }
  /** The properties of a decision beside its request and result. */
  #decidedBy(tier, priority, reserved) {
    const by = this.#by;
    const { charges, store } = this;
    const resets = charges.resets.count;
    const isAlike2 = by && by.tier === tier && by.priority === priority && by.reserved === reserved;
    if (isAlike2 && by.resets === resets) return by;
    this.#by = {
      charges,
      kind: "decided",
      store,
      tier,
      priority,
      reserved,
      resets,
      list: void 0,
      took: void 0
    };
    return this.#by;
  }
  /**
   * Charges units that were produced after the request was decided on, such as the bytes of its response. The verdict says whether
   * they had room. If not, `CHARGE` charges them up to the capacity of each limit, and `CONSUME` none.
   */
  chargeMore({ request, by: decided2 }, unit, units, op = CHARGE) {
    const { identities } = request;
    const plan = this.#fallback.wholeOf(request.plan);
    const costs = plan.units.map((each) => each === unit ? units : 0);
    const { tier, priority } = decided2;
    const by = { ...this.#decidedBy(tier, priority, void 0), isOfResponse: true };
    return this.#decideByStore({ op, plan, identities, costs, permitId: "", fresh: true }, by);
  }
  /** Waits in the queues of the resolved limits until admitted. The caller still waits for `delayMs` of a queueing limit. */
  async waitTurn(resolve, wait, options = NO_OPTIONS) {
    const first2 = resolve();
    const { plan, identities, priority } = first2 instanceof Promise ? await first2 : first2;
    const headStartMs = wait.headStartMs ?? priority * (wait.ageEveryMs ?? 0);
    const fresh = { ...options, fresh: true, strikes: false };
    const { store } = this;
    const turns = plan.sharesTurns;
    const cellOf2 = (queue) => plan.cellOf[queue];
    const { cost } = wait;
    const costs = costsOf(this.policy.where, plan, cost, options, void 0);
    const needs = needsOf(plan, cost, costs, void 0) ?? costs;
    const op = isPeek(cost, needs) ? PEEK : CONSUME;
    const permits2 = costs.find((_, c) => CELL_KINDS[plan.cells[c].kernel].hasPermits) ?? 0;
    const waiter = {
      queues: queuesOf(plan, identities),
      units: plan.cellOf.map((c) => needs[c]),
      isPeek: op === PEEK,
      decide: (turn, queue = 0) => {
        const withTurn = turn ? { ...fresh, turn: { ...turn, cell: cellOf2(queue) } } : fresh;
        return whenKnown(resolve(), (known2) => this.decide(known2, cost, withTurn, op));
      },
      peek: (queue, units) => {
        const unit = plan.units[cellOf2(queue ?? 0)];
        const [own, measured] = units === void 0 ? [cost, {}] : costIn(unit, units);
        return whenKnown(resolve(), (known2) => this.decide(known2, own, { ...fresh, ...measured }, PEEK));
      },
      reportOf: turns && store.reportWaiting && ((queue) => ({
        ttlMs: turns.ttlMs,
        send: async (process2, classes) => store.reportWaiting?.(plan, identities, { process: process2, cell: cellOf2(queue) }, classes)
      })),
      mayHavePermits: store.mayHavePermits && !turns ? async () => await store.mayHavePermits?.(plan, identities, permits2) !== false : void 0,
      refund: (verdict) => this.charges.refund(verdict[DECISION]),
      delayOf: (verdict, enoughMs) => {
        const booking = bookingOf(verdict);
        return booking ? this.booked.delayOf(booking, wait.client, enoughMs) : verdict.delayMs;
      },
      waits: () => this.emitter.waits(this.policy.name)
    };
    return new Waiting(this.#queues, this.policy.where, waiter, { ...wait, headStartMs }).admission();
  }
  /** Whether the store has returned promises, as stores shared by processes do. */
  get isStoreAsync() {
    return this.#isStoreAsync;
  }
  /** Whether any request waits in this process. */
  get hasQueues() {
    return this.#queues.size > 0;
  }
  /** Whether other requests wait for one of these limits in this process. */
  hasWaitersFor(plan, identities) {
    return this.#queues.hasAny(queuesOf(plan, identities));
  }
  /** Wakes all waiters, as there may be room. */
  wake() {
    this.#queues.wake();
  }
  /** Forgets the charges on these identities in one tier. */
  async reset(tier, plan, identities) {
    this.charges.resets.note(tier, identities);
    this.#fallback.reset(plan, identities);
    await this.store.reset(plan, identities);
  }
  /** Notifies the listeners of a final verdict. `isRefused`: whether the request does not proceed. */
  conclude(verdict, isRefused) {
    const { noteRefusal } = this.store;
    if (isRefused && noteRefusal && verdict.kind === "decided") {
      for (const [policy, identities] of refusedBy(verdict[DECISION])) noteRefusal(policy, [...identities]);
    }
    if (isWatched()) this.emitter.decided(verdict, isRefused);
  }
  /** Measures the duration of `#decideByStore`. */
  #measure(request, by) {
    const took = { ms: 0 };
    const began = performance.now();
    return whenKnown(this.#decideByStore(request, { ...by, took }), (verdict) => {
      took.ms = performance.now() - began;
      return verdict;
    });
  }
  #decideByStore(request, by) {
    let result;
    try {
      result = this.store.decide(request);
    } catch (error) {
      return this.#decideWithout(request, by, error);
    }
    if (!(result instanceof Promise)) return new Verdict(decisionOn(request, result, by));
    return this.#decideLater(request, result, by);
  }
  #decideLater(request, result, by) {
    this.#isStoreAsync = true;
    return result.then(
      (late) => {
        this.#fallback.record(request, late);
        return new Verdict(decisionOn(request, late, by));
      },
      (error) => this.#decideWithout(request, by, error)
    );
  }
  /** The verdict when the store could not decide. */
  #decideWithout(request, by, error) {
    if (isUnavailable(error)) return this.#fallback.decide(request, by);
    throw error;
  }
};
function isPeek(cost, needs) {
  return typeof cost === "number" && takesNothing(needs);
}
function costIn(unit, units) {
  if (unit === "content-bytes") return [1, { bytes: units }];
  return unit === "requests" ? [units, {}] : [{ named: /* @__PURE__ */ new Map([[unit, units]]) }, {}];
}
function queuesOf({ cells, cellOf: cellOf2 }, identities) {
  return cellOf2.map((c) => {
    const { id, identity } = cells[c];
    return `${id}
${identities[identity]}`;
  });
}

// packages/core/src/limiter/events.ts
var LIMITER_EVENTS = [
  "decision",
  "refused",
  "near-limit",
  "strike",
  "ban",
  "block",
  "unblock",
  "waited",
  "warning"
];

// packages/core/src/limiter/limiter-emitter.ts
var LimiterEmitter = class {
  listeners;
  /** `where`: the name of the limiter in warnings. */
  constructor(where) {
    this.listeners = new Listeners(where, LIMITER_EVENTS);
  }
  /** Whether to measure the next decision. */
  get isMeasured() {
    const { listeners } = this;
    if (activeCounter()?.measuresNext()) return true;
    return hasDecisionListeners() && (listeners.hasListeners("decision") || listeners.hasListeners("refused"));
  }
  /** Whether there is a listener for strikes or bans. */
  get hasStrikeListeners() {
    return this.listeners.hasListeners("strike") || this.listeners.hasListeners("ban");
  }
  /** Takes a final verdict. `isRefused`: whether the request does not proceed. Call it where decisions are watched. */
  decided(verdict, isRefused) {
    activeCounter()?.decided(verdict);
    if (!hasDecisionListeners()) return;
    const { listeners } = this;
    if (verdict.allowed && listeners.hasListeners("near-limit")) {
      for (const use of usesOf(verdict)) listeners.send("near-limit", use);
    }
    const isObserved = listeners.hasListeners("decision");
    const isRefusalObserved = isRefused && listeners.hasListeners("refused");
    if (!isObserved && !isRefusalObserved) return;
    const event = decisionEvent(verdict);
    if (isObserved) listeners.send("decision", event);
    if (isRefusalObserved) listeners.send("refused", event);
  }
  /** Takes the verdict of a request whose refusal is a strike. */
  struckByRefusal({ plan: { ban }, identities }, verdict) {
    const { result } = verdict[DECISION];
    if (!ban || !(verdict.reason === "limited" || result.block?.hasBegun)) return;
    const strike = { weight: 1, reason: "" };
    this.struck(verdict.policy, identities[ban.identity], strike, result, verdict.kind === "unavailable");
  }
  /** Takes each strike. */
  struck(policy, text, { weight, reason }, { block }, isLocal) {
    if (!this.hasStrikeListeners || block && !block.hasBegun) return;
    const { listeners } = this;
    const identity = identityIn(text);
    listeners.send("strike", { policy, identity, weight, reason, isLocal });
    if (!block?.ban) return;
    const { rung, strikes } = block.ban;
    listeners.send("ban", { policy, identity, rung, strikes, forMs: block.remainingMs, reason: block.reason, isLocal });
  }
  /** Takes the start of a wait in a queue. Returns the function to call at its end; undefined without listeners. */
  waits(policy) {
    const counted = activeCounter()?.waits(policy);
    const isObserved = this.listeners.hasListeners("waited");
    if (!counted && !isObserved) return void 0;
    const began = performance.now();
    return (outcome) => {
      const waitedMs = performance.now() - began;
      counted?.(outcome, waitedMs);
      if (isObserved) this.listeners.send("waited", { policy, waitedMs, outcome });
    };
  }
};
function decisionEvent(verdict) {
  const { policy, allowed, reported } = verdict;
  return {
    policy,
    allowed,
    outcome: verdict.reason ?? "admitted",
    limit: refusingLimit(verdict),
    source: sourceOf(verdict[DECISION]),
    durationMs: verdict[DECISION].by.took?.ms ?? 0,
    used: largestUse(verdict),
    reported,
    verdict
  };
}
function refusingLimit(verdict) {
  if (verdict.allowed || verdict.reason === "left") return void 0;
  const { limits } = verdict;
  return limits[longestRefusal(limits)]?.name;
}
function largestUse(verdict) {
  const decision = verdict[DECISION];
  if (!isOfLimits(decision)) return void 0;
  const { resolved } = decision.request.plan;
  return resolved.reduce((largest, _, i) => Math.max(largest, useOf(decision, i)), 0);
}
function usesOf(verdict) {
  const decision = verdict[DECISION];
  if (!isOfLimits(decision) || !isHeld(decision)) return [];
  const { resolved } = decision.request.plan;
  return resolved.map(({ name }, i) => {
    const [before, used2] = [useBefore(decision, i), useOf(decision, i)];
    return { policy: verdict.policy, limit: name, used: used2, before, verdict };
  });
}

// packages/core/src/lists/standard-value.ts
function standardValue(kind, raw) {
  return secretValue(kind, raw) ?? checkedKey("list", raw);
}

// packages/core/src/lists/kind-reader.ts
var STANDARD_IPV6_PREFIX = 64;
var PROBE = "Probe 1";
var KindReader = class {
  /** The kinds that there are, for messages. */
  all;
  ipv6Prefix;
  #where;
  #keys = /* @__PURE__ */ new Map();
  #moreKeys;
  #addressOf;
  constructor(policy, addressOf, moreKeys, moreKinds) {
    this.#where = policy.where;
    this.#addressOf = addressOf;
    this.#moreKeys = moreKeys;
    const keys = policy.all.flatMap((each) => each.keys).flatMap((key) => [key, ...key?.parts ?? []]);
    for (const key of [...keys].sort((one, other) => bitsOf(other) - bitsOf(one))) {
      if (!this.#keys.has(kindOf2(key))) this.#keys.set(kindOf2(key), key);
    }
    this.ipv6Prefix = this.#keys.get("ip")?.bits ?? STANDARD_IPV6_PREFIX;
    this.all = [.../* @__PURE__ */ new Set([...this.#keys.keys(), ...moreKinds])];
  }
  /**
   * Whether a request can have values of a kind. `raw`: whether the values to compare with were made by the kind alone, without
   * regard to the policy's keys.
   */
  canRead(kind, raw) {
    if (kind === "ip") return this.all.includes(kind);
    return this.#has(kind) && !(raw && !this.#isStandard(kind));
  }
  valueOf(kind, raw) {
    return this.#has(kind) ? valueFor(this.#where, this.#keyOf(kind), { kind, value: raw }) : void 0;
  }
  /**
   * The counted value of a kind; for `ip`, the address itself. Undefined where a request has none.
   *
   * @throws RequestFault for an invalid value, which otherwise would be on no list, whoever sends it
   */
  read(kind, subject, context) {
    if (kind === "ip") {
      const address = this.#addressOf(subject, context);
      return typeof address === "string" ? address : void 0;
    }
    const key = this.#keyOf(kind);
    const value = key ? key(subject, context) : subject;
    return isMissing(value) ? void 0 : checkedKey(this.#where, value, true);
  }
  /** The same of an identity that is given by hand. */
  readGiven(kind, given) {
    const value = partOf(kind, given);
    if (value === void 0) return void 0;
    return kind === "ip" ? String(value) : this.valueOf(kind, value);
  }
  /** An identity as the policy's own keys would count it. */
  textOf({ kind, value }) {
    return kind === "ip" && this.#keys.get(kind)?.normalize?.(value) || value;
  }
  #has(kind) {
    return this.#keys.has(kind) || this.#moreKeys(kind) !== void 0;
  }
  #keyOf(kind) {
    return this.#keys.has(kind) ? this.#keys.get(kind) : this.#moreKeys(kind);
  }
  /** Whether the policy's key of a kind makes values as they are made without a policy. */
  #isStandard(kind) {
    if (kind.includes("+")) return false;
    return this.valueOf(kind, PROBE) === standardValue(kind, PROBE);
  }
};
function partOf(kind, given) {
  if (given.kind === kind) return given.value;
  const at = given.kind.split("+").indexOf(kind);
  return at >= 0 && Array.isArray(given.value) ? given.value[at] : void 0;
}

// packages/core/src/lists/list-step.ts
var ListStep = class {
  #where;
  #kinds;
  #onUnreadable;
  #sources;
  #allowing;
  #denying;
  #groups;
  /** The sum of all versions: none goes down. */
  #versions;
  #unreadable = /* @__PURE__ */ new Set();
  /** Those that are still read for the first time. */
  #pending;
  /** @throws SluiceError `INVALID_POLICY`, also for a kind that a list of the policy has and no key of it */
  constructor(where, allow, deny, store, kinds, onUnreadable) {
    this.#where = where;
    this.#kinds = kinds;
    this.#onUnreadable = onUnreadable;
    checkKinds2(where, "allow", allow, kinds);
    checkKinds2(where, "deny", deny, kinds);
    const sourcesOf = (items, effect, isOfStore) => items.filter(isList).map((item) => {
      const list = item.forStore?.(where, store) ?? item;
      const isRaw = list.forKeys === void 0;
      return { list: list.forKeys?.(kinds) ?? list, effect, isOfStore, isRaw };
    });
    const predicatesIn = (items) => items.filter((item) => typeof item === "function");
    this.#sources = [
      ...sourcesOf(allow, "allow", false),
      ...sourcesOf(store.lists?.allow ?? [], "allow", true),
      ...sourcesOf(deny, "deny", false),
      ...sourcesOf(store.lists?.deny ?? [], "deny", true)
    ];
    this.#allowing = [...predicatesIn(allow), ...predicatesIn(store.lists?.allow ?? [])];
    this.#denying = [...predicatesIn(deny), ...predicatesIn(store.lists?.deny ?? [])];
    this.#versions = this.#sumOfVersions();
    this.#groups = this.#grouped();
    this.#pending = this.#sources.map(({ list }) => list).filter(({ pending }) => pending);
  }
  /** Set until all lists are loaded, and resolves then. Decisions wait for it. */
  get pending() {
    if (this.#pending.length === 0) return void 0;
    this.#pending = this.#pending.filter(({ pending }) => pending);
    return this.#pending.length === 0 ? void 0 : Promise.all(this.#pending.map(({ pending }) => pending));
  }
  /** Undefined where no list has it. */
  decide(subject) {
    const versions = this.#sumOfVersions();
    if (versions !== this.#versions) {
      this.#versions = versions;
      this.#groups = this.#grouped();
    }
    let denied;
    for (const group of this.#groups) {
      const { kind, deny } = group;
      const allow = allowsAddresses(group) && subject.hasForgeableAddress() ? NO_LISTS : group.allow;
      const value = subject.valueOf(kind);
      if (value === void 0) continue;
      const identity = identityOf(kind, value);
      const allowing = smallest(allow, identity);
      const denying = smallest(deny, identity);
      if (allowing && !(denying && denying.match.size <= allowing.match.size)) {
        return listed2("allow", identity, allowing);
      }
      if (denying) denied ??= listed2("deny", identity, denying);
    }
    const { ask } = subject;
    return this.#asked(this.#allowing, "allow", ask) ?? denied ?? this.#asked(this.#denying, "deny", ask);
  }
  #asked(predicates, effect, ask) {
    if (!ask) return void 0;
    for (const predicate of predicates) {
      const found = ask(predicate);
      if (typeof found !== "boolean") invalidPolicy(this.#where, effect, "true or false", found);
      if (found) {
        const report = { effect, kind: "predicate", list: predicate.name, reason: "", expiresAt: void 0 };
        return { report, identity: void 0 };
      }
    }
    return void 0;
  }
  #sumOfVersions() {
    let sum = 0;
    for (const { list } of this.#sources) sum += list.version;
    return sum;
  }
  #grouped() {
    const groups = /* @__PURE__ */ new Map();
    for (const { list, effect, isOfStore, isRaw } of this.#sources) {
      for (const kind of list.kinds) {
        if (!this.#kinds.canRead(kind, isRaw)) {
          if (!isOfStore) this.#warnUnreadable(list.name, kind);
          continue;
        }
        const group = groups.get(kind) ?? { kind, allow: [], deny: [] };
        groups.set(kind, group);
        group[effect].push(list);
      }
    }
    return [...groups.values()];
  }
  #warnUnreadable(list, kind) {
    const name = `${list}
${kind}`;
    if (this.#unreadable.has(name)) return;
    this.#unreadable.add(name);
    this.#onUnreadable(list, kind);
  }
};
var NO_LISTS = [];
function allowsAddresses({ kind, allow }) {
  return allow.length > 0 && (kind === "ip" || kind.split("+").includes("ip"));
}
function checkKinds2(where, effect, items, kinds) {
  for (const list of items.filter(isList)) {
    if (list.forStore) continue;
    const unreadable = list.kinds.find((kind) => !kinds.canRead(kind, list.forKeys === void 0));
    if (unreadable === void 0) continue;
    const known2 = kinds.all.map(show).join(", ");
    const expected = `kinds that this policy reads from a request (${known2})`;
    wrongPolicy(`${where}: ${effect}: expected ${expected}, got ${show(unreadable)} in ${list.name}`);
  }
}
function smallest(lists, identity) {
  let found;
  for (const list of lists) {
    const match = list.match(identity);
    if (match && !(found && found.match.size <= match.size)) found = { list, match };
  }
  return found;
}
function listed2(effect, identity, { list, match }) {
  const { reason, expiresAt } = match;
  return { report: { effect, kind: identity.kind, list: list.name, reason, expiresAt }, identity };
}
function identityOf(kind, value) {
  const address = kind === "ip" ? ipAddress(value) : void 0;
  return address ? { kind, value, address } : { kind, value };
}
function listsIn(where, { allow, deny }, denyOptions) {
  if (!isDenyOptions(deny))
    return { allow: checkedLists(where, "allow", allow), deny: checkedLists(where, "deny", deny) };
  knownOptions(`${where}: deny`, deny, ["lists", ...denyOptions]);
  if (deny.lists === void 0) invalidPolicy(where, "deny.lists", "a list such as ipRanges([\u2026])", void 0);
  return { allow: checkedLists(where, "allow", allow), deny: checkedLists(where, "deny.lists", deny.lists) };
}
function isDenyOptions(deny) {
  return typeof deny === "object" && deny !== null && !Array.isArray(deny) && !isList(deny);
}

// packages/core/src/limiter/open-proxy.ts
var warnedApps = /* @__PURE__ */ new WeakSet();
function isAddressForgeable({ proxyTrust }, emit = emitWarning) {
  return hasOpenProxy(
    proxyTrust,
    warnedApps,
    ({ everyone, remedy }) => emit(
      "SLUICE_OPEN_PROXY",
      `${everyone} trusts X-Forwarded-For from everyone, so any client can choose its address and escape limits by IP; allow lists of addresses, and overrides that raise limits for addresses, match nobody; ${remedy}`
    )
  );
}
function hasOpenProxy(proxyTrust, warned2, warn) {
  if (typeof proxyTrust !== "object") return false;
  if (!warned2.has(proxyTrust.app)) {
    warned2.add(proxyTrust.app);
    warn(proxyTrust);
  }
  return true;
}

// packages/core/src/limiter/listed-subjects.ts
var BY_LIST = {
  charges: {
    async settle(decision, actual) {
      const amounts = entriesIn2(actual)?.map(([, units]) => units) ?? [actual];
      for (const units of amounts) checkActualCost("settle", units, maxToSettle(decision));
      return false;
    },
    meter: (decision) => idleMeter(decision, decision.result.allowed)
  },
  kind: "listed",
  store: void 0,
  tier: void 0,
  priority: 0,
  reserved: void 0,
  resets: 0,
  took: void 0
};
var NO_LIMITS = { resolved: [], cellOf: [], units: [], reserves: void 0, definitions: [] };
function hasLists({ allow, deny }, store) {
  return allow !== void 0 || deny !== void 0 || store?.lists !== void 0;
}
var ListedSubjects = class {
  #where;
  #reader;
  #step;
  #plan;
  #warnings;
  /** @throws SluiceError `INVALID_POLICY` */
  constructor(policy, store, options, warnings, { addressOf, moreKeys, moreKinds, denyOptions }) {
    const { where } = policy;
    const reader = new KindReader(policy, addressOf, moreKeys, moreKinds);
    const { allow, deny } = listsIn(where, options, denyOptions);
    this.#where = where;
    this.#reader = reader;
    this.#warnings = warnings;
    this.#plan = readablePlan({ policy: policy.name, cells: [], starts: [""], ...NO_LIMITS });
    this.#step = new ListStep(where, allow, deny, store, reader, (list, kind) => this.#warnUnreadable(list, kind));
  }
  /** See `ListStep`. */
  get pending() {
    return this.#step.pending;
  }
  /** Undefined where no list matches the argument. */
  decide(subject, context) {
    return this.#verdict({
      valueOf: (kind) => this.#reader.read(kind, subject, context),
      ask: (predicate) => predicate(subject, context),
      // Without HTTP there is no context, and the application determines the address.
      hasForgeableAddress: () => context !== void 0 && isAddressForgeable(context, this.#warnings.emit)
    });
  }
  /** The same for an identity that is given by hand: functions of requests are not called. */
  decideGiven(given) {
    return this.#verdict({
      valueOf: (kind) => this.#reader.readGiven(kind, given),
      ask: void 0,
      hasForgeableAddress: () => false
    });
  }
  /** Warns about a block that has no effect, as an allow list admits the identity. */
  adviseOnBlock(given) {
    const list = this.decideGiven(given)?.list;
    if (list?.effect !== "allow") return;
    this.#warnings.emit(
      "SLUICE_BLOCK_ALLOWED",
      `${this.#where}: block: an identity of the kind ${given.kind} was blocked that ${list.list} allows: it is still admitted, as allow lists come before blocks`
    );
  }
  #verdict(subject) {
    const listed3 = this.#step.decide(subject);
    if (!listed3) return void 0;
    const { identity, report } = listed3;
    const address = identity ? void 0 : subject.valueOf("ip");
    const known2 = identity ?? (address === void 0 ? void 0 : { kind: "ip", value: address });
    const text = known2 ? startOf2(known2.kind) + this.#reader.textOf(known2) : "";
    const request = { op: PEEK, plan: this.#plan, identities: [text], costs: [], permitId: "" };
    const result = { now: 0, allowed: report.effect === "allow", values: [], offset: 0 };
    return new Verdict(decisionOn(request, result, { ...BY_LIST, list: report }));
  }
  #warnUnreadable(list, kind) {
    this.#warnings.emit(
      "SLUICE_LIST_KIND",
      `${this.#where}: ${list} has identities of the kind ${kind}, which this policy does not read from a request (it reads ${this.#reader.all.join(", ")}): they match nothing`
    );
  }
};

// packages/core/src/limiter/set-up-advice.ts
var MAX_MADE_LATE = 100;
var MAX_ALIKE = 2;
var unnamedOn = /* @__PURE__ */ new WeakSet();
var alike = /* @__PURE__ */ new Map();
var madeLate = 0;
function adviseOnSetUp(policy, warnings, { name, store }) {
  const { where } = policy;
  if (store === void 0) {
    const made2 = hasDecided() && tooManyMade(policy);
    if (!made2) return;
    warnings.emit(
      "SLUICE_MANY_LIMITERS",
      `${where}: ${made2} with memory of their own were made after the first decision: a limiter that is made for each request never limits; make it once, when the server starts`
    );
  } else if (name === void 0) {
    if (unnamedOn.has(store)) {
      warnings.emit(
        "SLUICE_SAME_NAME",
        `${where}: another limiter without a name uses this store: where their limits are equal they share their counts; give each a name`
      );
    }
    unnamedOn.add(store);
  }
}
function tooManyMade({ where, all }) {
  if (madeLate > MAX_MADE_LATE) return void 0;
  const limits = `${where} ${JSON.stringify(all.map((each) => each.limits))}`;
  const count2 = (alike.get(limits) ?? 0) + 1;
  alike.set(limits, count2);
  if (count2 > MAX_ALIKE)
    return count2 === MAX_ALIKE + 1 ? `${count2} limiters of this name and with the same limits` : void 0;
  return ++madeLate > MAX_MADE_LATE ? `more than ${MAX_MADE_LATE} limiters` : void 0;
}

// packages/core/src/limiter/stores-in-use.ts
var stores = /* @__PURE__ */ new Set();
var known = /* @__PURE__ */ new WeakSet();
var gone = new FinalizationRegistry((ref) => stores.delete(ref));
function noteStoreInUse(store) {
  if (known.has(store)) return;
  known.add(store);
  const ref = new WeakRef(store);
  stores.add(ref);
  gone.register(store, ref);
}

// packages/core/src/limiter/limiter.ts
function createLimiter(options) {
  return makeLimiter(options).limiter;
}
function makeLimiter(options) {
  const known2 = [...POLICY_OPTIONS, ...LIST_OPTIONS, ...UNAVAILABLE_OPTIONS, "store", "onVerdict", "warnings"];
  knownOptions("limiter", options, known2);
  const { store = memoryStore() } = options;
  const { ban } = options;
  const policy = choosePolicy(options);
  for (const field of ADDED_BAN_OPTIONS) {
    if (ban?.[field] !== void 0) {
      throw new SluiceError("INVALID_POLICY", `${policy.where}: ban: ${field}: expected none without HTTP`);
    }
  }
  const emitter = new LimiterEmitter(policy.where);
  const warnings = new Warnings(policy.where, LIMITER_WARNINGS, options.warnings, emitter.listeners);
  const areTexts = policy.all.every(({ keys }) => keys.every((key) => key === void 0));
  const namesIdentity = areTexts ? isPlainObject : () => false;
  const { onVerdict } = options;
  optionalFunction(policy.where, "onVerdict", onVerdict);
  const listener = `${policy.where}: onVerdict`;
  const afterVerdict = onVerdict && ((subject, verdict) => warnOnRejection(listener, onVerdict(subject, verdict), warnings.emit));
  const sources = areTexts ? TEXTS : OBJECTS;
  const listed3 = hasLists(options, store) ? new ListedSubjects(policy, store, options, warnings, sources) : void 0;
  const engine = new Engine(policy, store, options, emitter);
  const limiter = new Limiter(new Subjects(policy, { namesIdentity, areTexts }), engine, listed3, afterVerdict);
  adviseOnSetUp(policy, warnings, options);
  return { limiter, engine };
}
var TEXTS = {
  addressOf: () => void 0,
  moreKeys: () => void 0,
  moreKinds: [],
  denyOptions: []
};
var OBJECTS = {
  ...TEXTS,
  addressOf: (subject) => subject?.ip,
  moreKinds: ["ip"]
};
var Limiter = class {
  #subjects;
  #engine;
  #where;
  /** Undefined where there are no lists. */
  #listed;
  /** Called with verdicts before they are returned. */
  #afterVerdict;
  /** @internal Use `createLimiter`. */
  constructor(subjects, engine, listed3, afterVerdict) {
    this.#subjects = subjects;
    this.#engine = engine;
    this.#where = engine.policy.where;
    this.#listed = listed3;
    this.#afterVerdict = afterVerdict;
    noteStoreInUse(engine.store);
  }
  get name() {
    return this.#engine.policy.name;
  }
  /** The limits as they were made. Shows the algorithm that a plain `{ limit, window }` selects. */
  get limits() {
    return this.#engine.policy.limits;
  }
  /**
   * Decides, and charges every limit if all have room. Never rejects for a refusal, nor because the
   * store is away: `unavailable` decides then.
   *
   * @throws SluiceError `INVALID_KEY`, `INVALID_COST`, `INVALID_POLICY` (options, or a limit function's result)
   */
  // Not `async`: that would resolve three microtasks later, and allocate two more promises.
  consume(subject, options = NO_OPTIONS) {
    try {
      checkCostOptions(this.#where, "consume", options);
      const verdict = this.#decide(subject, options, void 0);
      if (this.#afterVerdict || this.#engine.store.noteRefusal || isWatched()) return this.#announced(subject, verdict);
      return verdict instanceof Promise ? verdict : Promise.resolve(verdict);
    } catch (error) {
      return Promise.reject(error);
    }
  }
  /** The verdict that `consume` would return now. Changes nothing. */
  async peek(subject, options = NO_OPTIONS) {
    checkCostOptions(this.#where, "peek", options);
    return this.#decide(subject, options, PEEK);
  }
  async refund(subject, verdict) {
    if (verdict === void 0 && typeof subject === "string") return this.#kept.refund(subject);
    return this.#refundVerdict(subject, verdict);
  }
  async #refundVerdict(subject, verdict) {
    if (verdict === void 0 && subject instanceof Verdict) {
      throw new SluiceError("INVALID_KEY", `${this.#where}: refund: expected refund(key, verdict): the key is missing`);
    }
    const decision = this.#decisionOf(verdict);
    if (!isHeld(decision)) return false;
    const isCounted = this.#subjects.isCountedOn(subject, verdict.tier, decision.request.identities);
    if (!(isCounted instanceof Promise ? await isCounted : isCounted)) {
      throw new SluiceError("INVALID_KEY", `${this.#where}: key: expected the key the verdict was given for`);
    }
    return this.#engine.charges.refund(decision);
  }
  async settle(verdict, actual) {
    if (typeof verdict === "string") return this.#kept.settle(verdict, actual);
    return this.#engine.charges.settle(this.#decisionOf(verdict), actual);
  }
  async release(verdict) {
    if (typeof verdict === "string") return this.#kept.release(verdict);
    if (verdict) await this.#engine.charges.release(this.#decisionOf(verdict));
    return void 0;
  }
  async renew(verdict) {
    if (typeof verdict === "string") return this.#kept.renew(verdict);
    await this.#engine.charges.renew(this.#decisionOf(verdict));
    return void 0;
  }
  /**
   * Waits its turn and resolves when admitted. Among calls for one key, the higher `priority` is first, then clients in turn by
   * `fairBy`, then first in, first out. The order holds within this process, or with `sharedTurns` by priority across processes.
   *
   * @throws SluiceError `WAIT_EXCEEDED` at once when the wait would exceed `maxWait`, when it can never succeed, or when `size`
   * calls wait. The signal's reason when aborted; a charge is refunded then.
   */
  // `async`, so that an invalid key rejects as in the other methods.
  async acquire(subject, options = {}) {
    const began = performance.now();
    const wait = acquireOptions(this.#where, options);
    const cost = checkedCost(this.#engine.policy, wait.cost);
    const pending = this.#listed?.pending;
    if (pending) await pending;
    const listed3 = this.#turnByList(subject);
    const resolver = listed3 ? void 0 : this.#subjects.resolver(subject, wait.priority);
    const resolve = resolver instanceof Promise ? await resolver : resolver;
    const { booked, charges } = this.#engine;
    const turn = listed3 ?? this.#engine.waitTurn(resolve, { ...wait, cost, waitsForStore: true });
    const verdict = await this.#announced(subject, turn.catch(refusalOf));
    if (verdict.delayMs > 0) {
      try {
        const maxWaitMs = wait.maxWaitMs - (performance.now() - began);
        await booked.waitWithin(this.#where, verdict, { ...wait, maxWaitMs });
      } catch (error) {
        await charges.refund(verdict[DECISION]);
        throw error;
      }
    }
    return verdict;
  }
  /**
   * Calls back with each event of this limiter. docs/events.md lists them, and `events.on()` has those of all limiters.
   * The call is synchronous, so be brief. A listener that throws or rejects causes a warning of the process
   * (`SLUICE_LISTENER_FAILED`) and changes no decision. Returns a function that stops listening.
   *
   * @example const stop = limiter.on('refused', ({ limit, verdict }) => audit(limit, verdict.keys))
   * @throws SluiceError `INVALID_POLICY`
   */
  on(event, listener, options) {
    return listen(this.#engine.emitter.listeners, this.#where, event, listener, options);
  }
  /**
   * Forgets the charges on an identity, in every tier if it is given as text or by its kind. Blocks stay. Strikes are
   * forgotten with the charges; a ban in force, and its rung, stay.
   *
   * `refund`, `settle` and `count` of this limiter do not refund earlier charges after that. Other limiters and other processes do
   * not see the reset, and may still refund theirs.
   *
   * @throws SluiceError `INVALID_KEY`, `STORE_UNAVAILABLE`
   */
  async reset(subject) {
    const all = this.#subjects.resolveAll(subject);
    for (const { tier, plan, identities } of all instanceof Promise ? await all : all) {
      await this.#engine.reset(tier, plan, identities);
    }
    this.#engine.wake();
  }
  /**
   * Refuses an identity, in every process that shares the store, until `for` from now. A second block replaces the first.
   * Where a policy groups addresses in several ways, the smallest group of an address is refused. A network of addresses is
   * refused as a whole; other processes refuse it within a second.
   *
   * @param identity by its kind, such as `{ ip: '192.0.2.7' }` or `{ ip: '192.0.2.0/24' }`; or its text, where the limiter counts one kind only
   * @throws SluiceError `INVALID_KEY`, which lists the kinds; `STORE_FULL` where a memory store has no room for
   * the block, or 100,000 networks are blocked on Redis;
   * `STORE_UNAVAILABLE`, after which the block may hold or not
   */
  async block(identity, options) {
    knownOptions(`${this.#where}: block`, options, ["for", "reason"]);
    const reason = checkReason(this.#where, options.reason === void 0 ? "" : options.reason);
    const forMs = spanOrForEver(`${this.#where}: block`, "for", options.for);
    const texts = this.#subjects.toBlock(identity);
    if (this.#subjects.rangeIn(identity) === void 0) this.#listed?.adviseOnBlock(this.#subjects.given(identity));
    const { policy, store, emitter } = this.#engine;
    const { name } = policy;
    await Promise.all(texts.map((text) => store.block(name, text, forMs, reason)));
    for (const text of texts) emitBlock(emitter.listeners, { policy: name, identity: text }, forMs, reason);
  }
  /**
   * Ends a block or ban before its time, also one by another policy where bans apply to the whole store. Forgets the strikes
   * and the rung, so the next ban is of the first rung.
   *
   * @throws SluiceError `INVALID_KEY`, `STORE_UNAVAILABLE`
   */
  async unblock(identity) {
    const texts = this.#subjects.toBlock(identity);
    const { policy, store, bans, emitter } = this.#engine;
    const { name } = policy;
    const scopes = policy.all.flatMap(({ ban }) => ban ? [ban.terms.scope] : []);
    const policies = [.../* @__PURE__ */ new Set([name, ...scopes])];
    await Promise.all(texts.flatMap((text) => policies.map((policy2) => store.unblock(policy2, text))));
    for (const text of texts) {
      bans?.end(text);
      emitUnblock(emitter.listeners, { policy: name, identity: text });
    }
    this.#engine.wake();
  }
  /**
   * Strikes an identity for an offence that no limit sees, such as a request for a path that only probes request. The last
   * required strike starts the ban. While the identity is banned or blocked, strikes do not count. During an outage of
   * the store strikes stay in this process.
   *
   * @param identity of the kind that the policy bans, such as `{ ip: '192.0.2.7' }`; or its text, where it counts one kind only
   * @returns the ban that holds now, or undefined. Also undefined for an identity that is never banned, such as a private address
   * @throws SluiceError `INVALID_POLICY` where the policy has no `ban`, `INVALID_KEY` for another kind
   */
  async strike(identity, options = {}) {
    const { bans } = this.#engine;
    if (!bans) throw new SluiceError("INVALID_POLICY", `${this.#where}: strike: expected a policy with ban`);
    const strike = checkedStrike(this.#where, options);
    return bans.strike(this.#subjects.toStrike(identity), strike);
  }
  get #kept() {
    const { kept } = this.#engine;
    return kept ?? invalidPolicy(this.#where, "id", "none without charges", "an id", "add charges: { keep }");
  }
  /**
   * The decision of a verdict.
   *
   * @throws SluiceError `INVALID_POLICY` for a value that is no verdict of this limiter
   */
  #decisionOf(verdict) {
    const expected = "a verdict of this limiter";
    if (!(verdict instanceof Verdict)) invalidPolicy(this.#where, "verdict", expected, verdict);
    const decision = verdict[DECISION];
    const { policy } = decision.request.plan;
    if (isCharged(decision) && policy !== this.name) {
      invalidPolicy(this.#where, "verdict", expected, `one of policy ${policy}`);
    }
    return decision;
  }
  #decideByList(subject) {
    const listed3 = this.#listed;
    if (!listed3) return void 0;
    return this.#subjects.namesIdentity(subject) ? listed3.decideGiven(this.#subjects.given(subject)) : listed3.decide(subject, void 0);
  }
  /** A listed argument is admitted or refused at once. Undefined where no list matches. */
  #turnByList(subject) {
    const listed3 = this.#decideByList(subject);
    if (!listed3 || listed3.allowed) return listed3 && Promise.resolve(listed3);
    return Promise.reject(new WaitExceeded(`${this.#where}: acquire: a list denies it`, void 0, listed3));
  }
  /** Passes a verdict, or the refusal with which a wait ended, to listeners and `onVerdict`. */
  #announced(subject, verdict) {
    if (!(verdict instanceof Promise)) {
      this.#announce(subject, verdict);
      return Promise.resolve(verdict);
    }
    return verdict.then((known2) => {
      const final = known2 instanceof WaitExceeded ? known2.refusal : known2;
      if (final) this.#announce(subject, final);
      if (known2 instanceof WaitExceeded) throw known2;
      return known2;
    });
  }
  #announce(subject, verdict) {
    this.#engine.conclude(verdict, !verdict.allowed);
    this.#afterVerdict?.(subject, verdict);
  }
  #decide(subject, options, op) {
    const { cost = 1, tier, priority } = options;
    const units = checkedCost(this.#engine.policy, cost);
    if (this.#listed) {
      const { pending } = this.#listed;
      if (pending) return pending.then(() => this.#decide(subject, options, op));
      const listed3 = this.#decideByList(subject);
      if (listed3) return listed3;
    }
    const resolved = this.#subjects.resolve(subject, tier, priority);
    return resolved instanceof Promise ? resolved.then((known2) => this.#engine.decide(known2, units, options, op)) : this.#engine.decide(resolved, units, options, op);
  }
};
function refusalOf(error) {
  if (error instanceof WaitExceeded) return error;
  throw error;
}

// packages/core/src/policy/limits/spread.ts
function spreadOver(where, spread, resolve) {
  if (spread === void 0) return resolve;
  const spreadMs = waitMs(where, "spread", spread);
  return (where2, limit, windowMs) => {
    const resolution = resolve(where2, limit, windowMs);
    if (spreadMs > windowMs) invalidPolicy(where2, "spread", `at most the window of ${windowMs} ms`, spreadMs);
    return { ...resolution, report: { ...resolution.report, spreadMs } };
  };
}

// packages/core/src/policy/limits/buckets.ts
function gcra(options) {
  const { burst, ...rate } = options ?? {};
  if (burst !== void 0) wholeNumber("gcra", "burst", burst, 1);
  const resolve = bucketOf("gcra", { limit: "limit", capacity: "burst" }, burst);
  return makeLimit("gcra", rate, ["burst", "unit", "estimate", "lease"], resolve);
}
function tokenBucket(options) {
  const { capacity, style = "greedy", spread, ...rest } = options ?? {};
  oneOf("tokenBucket", "style", style, ["greedy", "interval"]);
  if (capacity !== void 0) wholeNumber("tokenBucket", "capacity", capacity, 1);
  if (spread !== void 0 && style !== "interval") {
    neverWithout("tokenBucket", "spread", 'style "interval"', spread);
  }
  const { rate, names } = renamed("tokenBucket", rest, "refill");
  const resolve = bucketOf("tokenBucket", names, capacity, style);
  const known2 = ["capacity", "refill", "every", "style", "spread", "unit", "estimate", "lease"];
  return makeLimit("tokenBucket", rate, known2, spreadOver("tokenBucket", spread, resolve), names);
}
function leakyBucket(options) {
  const { capacity, queue = false, ...rest } = options ?? {};
  if (typeof queue !== "boolean") oneOf("leakyBucket", "queue", queue, ["true", "false"]);
  if (queue && rest.lease !== void 0) {
    neverBeside("leakyBucket", "lease", "queue", rest.lease);
  }
  if (queue && rest.unit === "response-bytes") {
    neverBeside("leakyBucket", "queue", 'unit "response-bytes"', queue);
  }
  if (capacity !== void 0) wholeNumber("leakyBucket", "capacity", capacity, 1);
  const { rate, names } = renamed("leakyBucket", rest, "leak");
  const resolve = bucketOf("leakyBucket", names, capacity, "greedy", queue);
  return makeLimit(
    "leakyBucket",
    rate,
    ["capacity", "leak", "every", "queue", "unit", "estimate", "lease"],
    resolve,
    names
  );
}
function renamed(where, options, unitsName) {
  const { [unitsName]: units, every, ...rest } = options;
  if (units !== void 0 && rest.limit !== void 0) neverBeside(where, unitsName, "limit", units);
  if (every !== void 0 && rest.window !== void 0) neverBeside(where, "every", "window", every);
  const names = {
    capacity: "capacity",
    limit: units === void 0 && "limit" in rest ? "limit" : unitsName,
    window: every === void 0 && "window" in rest ? "window" : "every"
  };
  const rate = { ...rest, limit: units ?? rest.limit, window: every ?? rest.window };
  return { rate, names };
}
function bucketOf(algorithm, names, given, style = "greedy", queue = false) {
  return (where, limit, windowMs) => {
    const capacity = given ?? limit;
    const stepMs = style === "interval" ? windowMs : 1;
    exactProduct(where, names.limit, limit, windowMs);
    exactProduct(where, names.capacity, capacity, windowMs);
    const size = limit === 0 ? 0 : capacity;
    const kind = queue ? ".queue" : "";
    return {
      kernel: "bucket",
      id: `bucket.${limit}.${windowMs}.${size}.${stepMs}${kind}`,
      // A bucket pays off its excess over a new capacity within a window (see `pace`). Only where no capacity is above its
      // limit is that no faster than the limit itself.
      carriedId: `bucket~${windowMs}.${stepMs}${size > limit ? `.${size}` : ""}${kind}`,
      params: [limit, windowMs, size, stepMs],
      report: { algorithm, limit, windowMs, capacity: size, queue }
    };
  };
}

// packages/core/src/policy/limits/concurrency.ts
var MAX_PERMITS = 1e5;
function concurrency(options) {
  knownOptions("concurrency", options, ["name", "limit", "key", "respond", "ttl", "maxHold", "reserve"]);
  const { ttl = 6e4, maxHold, ...rest } = options;
  const ttlMs = waitMs("concurrency", "ttl", ttl);
  const maxHoldMs = maxHold === void 0 ? Math.min(10 * ttlMs, MAX_DURATION_MS) : waitMs("concurrency", "maxHold", maxHold);
  const limit = makeLimit("concurrency", { ...rest, window: `${ttlMs}ms` }, [], (where, limit2, ttlMs2) => {
    exactProduct(where, "limit", limit2, ttlMs2);
    if (limit2 > MAX_PERMITS) invalidPolicy(where, "limit", `at most ${MAX_PERMITS} permits`, limit2);
    return {
      kernel: "concurrency",
      id: `concurrency.${limit2}.${ttlMs2}`,
      carriedId: `concurrency~${ttlMs2}`,
      params: [limit2, ttlMs2],
      report: { algorithm: "concurrency", limit: limit2, windowMs: ttlMs2, capacity: limit2, queue: false }
    };
  });
  return Object.freeze({ ...limit, maxHold: maxHoldMs });
}

// packages/core/src/policy/limits/fixed-window.ts
function fixedWindow(options) {
  const { anchor = "clock", spread, ...rate } = options ?? {};
  const byClock = oneOf("fixedWindow", "anchor", anchor, ["clock", "first-request"]) === "clock";
  if (spread !== void 0 && !byClock) {
    neverBeside("fixedWindow", "spread", 'anchor "first-request"', spread);
  }
  const kind = byClock ? "fixed" : "opened";
  const resolve = spreadOver("fixedWindow", spread, (_where, limit, windowMs) => ({
    kernel: "counter",
    id: `${kind}.${limit}.${windowMs}`,
    carriedId: `${kind}~${windowMs}`,
    // The third is 1 where refusals count: see `CELL_KINDS`.
    params: [limit, windowMs, 0, byClock ? 1 : 0],
    report: { algorithm: "fixedWindow", limit, windowMs, capacity: limit, queue: false }
  }));
  return makeLimit(
    "fixedWindow",
    rate,
    ["anchor", "spread", "unit", "estimate", "lease"],
    resolve
  );
}

// packages/core/src/redis/slots/across-slots.ts
function decideAcrossSlots(given, slots, decide) {
  const distinct = [...new Set(slots)];
  return decideInParts(given, partsOf(given.plan, slots), (part3, i) => decide(part3, distinct[i]));
}
async function decideInParts(given, parts2, decide) {
  const op = given.op !== CHARGE ? given.op : isImpossible(given) ? PEEK : CONSUME;
  const request = { ...given, op };
  const requests = partRequests(request, parts2);
  const settled = await Promise.allSettled(requests.map(decide));
  const results = settled.map((result2) => result2.status === "fulfilled" ? result2.value : void 0);
  const failure = settled.find((result2) => result2.status === "rejected");
  const allowed = results.every((result2) => result2?.allowed);
  if (!allowed && request.op === CONSUME) {
    const isCharged2 = given.op === CHARGE && !failure && !results.some((result2) => result2?.block);
    const seconds = parts2.map(async (part3, i) => {
      const first2 = results[i];
      if (!first2) return;
      const again = (op2) => decide({ ...requests[i], op: op2, charge: first2 }, i);
      if (isCharged2) results[i] = await refusalCharged(part3, first2, again);
      else if (first2.allowed) results[i] = { ...await again(REFUND), allowed: true };
    });
    const all = Promise.allSettled(seconds);
    if (!failure) await all;
  }
  if (failure) throw failure.reason;
  const result = whole2(request, parts2, results, allowed);
  resultsOf.set(result, results);
  return result;
}
async function refusalCharged({ plan }, first2, again) {
  const charge2 = first2.allowed ? first2 : await again(CHARGE);
  if (charge2.allowed && plan.cells.some(({ kernel }) => CELL_KINDS[kernel].hasPermits)) await again(RELEASE);
  const after = first2.allowed ? await again(PEEK) : charge2;
  return after.block || charge2.allowed && !first2.allowed ? first2 : after;
}
var resultsOf = /* @__PURE__ */ new WeakMap();
var partsByPlan = /* @__PURE__ */ new WeakMap();
function knownParts(plan, grouping, make) {
  const byGrouping = partsByPlan.get(plan) ?? {};
  partsByPlan.set(plan, byGrouping);
  byGrouping[grouping] ??= make();
  return byGrouping[grouping];
}
function partsOf(plan, slots) {
  return knownParts(
    plan,
    slots.map((slot) => slots.indexOf(slot)).join(),
    () => [...new Set(slots)].map((slot) => {
      const identities = slots.flatMap((other, i) => other === slot ? [i] : []);
      return part2(plan, identities, ({ identity }) => identities.includes(identity));
    })
  );
}
function part2(plan, identities, contains) {
  let next = 0;
  const positionsOf = plan.cells.map(({ limits }) => limits.map(() => next++));
  const cells = plan.cells.flatMap((cell, i) => contains(cell) ? [i] : []);
  const positions = cells.flatMap((i) => positionsOf[i]);
  const partial = {
    policy: plan.policy,
    banningPolicy: plan.banningPolicy,
    cells: cells.map((i) => {
      const cell = plan.cells[i];
      return { ...cell, identity: identities.indexOf(cell.identity) };
    }),
    identities: identities.length,
    starts: identities.map((i) => plan.starts[i]),
    reports: positions.length,
    ...plan.sharesTurns && { sharesTurns: plan.sharesTurns }
  };
  return { plan: partial, identities, cells, positions };
}
function partRequests(request, parts2) {
  const { op, permitId, needs, turn, charge: charge2, keep } = request;
  const charges = charge2 && resultsOf.get(charge2);
  return parts2.map((part3, i) => {
    const { plan, identities, cells } = part3;
    const own = charges?.length === parts2.length ? charges[i] : charge2 && partResult(part3, charge2);
    return {
      op,
      plan,
      identities: identities.map((i2) => request.identities[i2]),
      costs: cells.map((i2) => request.costs[i2]),
      ...needs && { needs: cells.map((i2) => needs[i2]) },
      permitId,
      // A part's refusal says nothing about the whole request, so the deny cache must not repeat it.
      fresh: true,
      ...turn && { turn: { ...turn, cell: cells.indexOf(turn.cell) } },
      ...own && { charge: own },
      ...keep && { keep: { ...keep, ...keep.takes && { takes: cells.map((i2) => keep.takes?.[i2] === true) } } }
    };
  });
}
function partResult({ cells, positions }, { now, allowed, values, offset, refunded }) {
  const startOf3 = (position) => offset + position * STRIDE;
  return {
    now,
    allowed,
    values: positions.flatMap((position) => values.slice(startOf3(position), startOf3(position + 1))),
    offset: 0,
    ...refunded && { refunded: cells.map((c) => refunded[c]) }
  };
}
function whole2(request, parts2, results, allowed) {
  const now = Math.min(...results.map((result) => result.now));
  const endOf2 = ({ now: now2, block: block2 }) => block2 ? now2 + block2.remainingMs : 0;
  const { block } = results.reduce((last, result) => endOf2(result) > endOf2(last) ? result : last);
  if (block) return refusalBy(block, now);
  const behindMs = Math.max(...results.map((result) => result.behindMs ?? 0));
  const values = new Array(request.plan.reports * STRIDE).fill(0);
  let refunded;
  parts2.forEach(({ positions, cells }, i) => {
    const result = results[i];
    for (const [n, units] of (result.refunded ?? []).entries()) {
      refunded ??= request.plan.cells.map(() => 0);
      refunded[cells[n]] = units;
    }
    positions.forEach((position, n) => {
      for (let k = 0; k < STRIDE; k++) {
        values[position * STRIDE + k] = result.values[result.offset + n * STRIDE + k];
      }
    });
  });
  const { keep, op } = request;
  const id = results.every((result) => result.id !== void 0) ? keep?.id : void 0;
  return {
    now,
    allowed,
    values,
    offset: 0,
    ...refunded && { refunded },
    ...behindMs > 0 && { behindMs },
    ...allowed && id !== void 0 && { id },
    ...keep && op > CHARGE && { outcome: outcomeOf(results.map(({ outcome }) => outcome)) }
  };
}

// test/contract/policies.ts
var POLICIES = {
  log: [slidingLog({ limit: 7, window: "10s" })],
  logs: [perSecond(3), perMinute(20), perHour(50)],
  fixed: [fixedWindow({ limit: 7, window: "10s" })],
  opened: [fixedWindow({ limit: 7, window: "10s", anchor: "first-request" })],
  weighted: [slidingWindow({ limit: 300, window: "10s" })],
  up: [slidingWindow({ limit: 7, window: "10s", segments: 2, rounding: "up" })],
  strict: [slidingWindow({ limit: 7, window: "10s", segments: 5, edge: "strict" })],
  dropped: [slidingWindow({ limit: 7, window: "10s", segments: 5, edge: "dropped" })],
  gcra: [gcra({ limit: 7, window: "10s", burst: 5 })],
  interval: [tokenBucket({ capacity: 9, refill: 4, every: "3s", style: "interval" })],
  queue: [leakyBucket({ leak: 3, every: "1s", capacity: 5, queue: true })],
  buckets: [
    gcra({ limit: 3, window: "1s" }),
    tokenBucket({ capacity: 9, refill: 4, every: "3s", style: "interval" }),
    gcra({ limit: 20, window: "1m", burst: 12 }),
    leakyBucket({ leak: 3, every: "1s", capacity: 8, queue: true })
  ],
  counters: [
    fixedWindow({ limit: 20, window: "1m" }),
    fixedWindow({ limit: 3, window: "1s" }),
    fixedWindow({ limit: 7, window: "10s", anchor: "first-request" })
  ],
  windows: [
    slidingWindow({ limit: 300, window: "1m" }),
    slidingWindow({ limit: 7, window: "10s", segments: 2, rounding: "up" }),
    slidingWindow({ limit: 9, window: "10s", segments: 5, edge: "strict" }),
    slidingWindow({ limit: 4, window: "2s", segments: 4, edge: "dropped" })
  ],
  joint: [
    slidingWindow({ limit: 12, window: "10s", reserve: 2 }),
    gcra({ limit: 30, window: "10s", unit: "content-bytes" }),
    fixedWindow({ limit: 5, window: "2s" }),
    gcra({ limit: 7, window: "5s", reserve: { 1: 2, 2: 1 } })
  ],
  permits: [concurrency({ limit: 4, ttl: "3s" })],
  mixed: [
    perSecond(3),
    gcra({ limit: 20, window: "1m" }),
    slidingWindow({ limit: 60, window: "1h", precision: "1m", edge: "dropped" }),
    concurrency({ limit: 5, ttl: "2s" })
  ],
  reserves: [
    gcra({ limit: 12, window: "10s", reserve: { 1: 3, 2: 2 } }),
    slidingLog({ limit: 9, window: "4s", reserve: 2 }),
    slidingWindow({ limit: 40, window: "10s", segments: 2 }),
    concurrency({ limit: 6, ttl: "3s", reserve: 1 })
  ],
  units: [
    slidingLog({ limit: 6, window: "5s" }),
    slidingLog({ limit: 9, window: "5s", unit: "tokens" }),
    slidingLog({ limit: 30, window: "20s", unit: "tokens", reserve: 3 }),
    gcra({ limit: 8, window: "4s", unit: "tokens", burst: 6 }),
    fixedWindow({ limit: 12, window: "10s", unit: "cents" }),
    fixedWindow({ limit: 12, window: "10s" }),
    slidingWindow({ limit: 20, window: "6s", unit: "cents", segments: 3, edge: "strict" }),
    concurrency({ limit: 5, ttl: "2s" })
  ],
  bodies: [
    slidingLog({ limit: 6, window: "5s" }),
    gcra({ limit: 50, window: "10s", unit: "content-bytes", reserve: 5 }),
    fixedWindow({ limit: 40, window: "10s", unit: "content-bytes" })
  ]
};
function randomFrom(seed) {
  let state = seed >>> 0;
  return (below) => {
    state = state + 1831565813 >>> 0;
    let mixed = Math.imul(state ^ state >>> 15, state | 1);
    mixed ^= mixed + Math.imul(mixed ^ mixed >>> 7, mixed | 61);
    return ((mixed ^ mixed >>> 14) >>> 0) % below;
  };
}

// test/support/effort.ts
var effort = process.env.SLUICE_EFFORT ?? "usual";
function byEffort({ usual, full, quick = usual }) {
  return { quick, usual, full }[effort];
}

// test/deep/interleavings/support/explore.ts
var ALL2 = { sample: Number.POSITIVE_INFINITY };
var SAMPLE5 = byEffort({ usual: 50, full: Number.POSITIVE_INFINITY });
async function explore(make, moreThan, { schedule = process.env.SLUICE_SCHEDULE, sample = SAMPLE5 } = {}) {
  if (schedule !== void 0) {
    const branches = schedule.split(".").map((choice) => ({ state: "", choices: 0, choice: Number(choice), schedules: 0 }));
    await run(make, branches);
  } else if (Number.isFinite(sample)) await exploreSome(make, sample);
  else {
    const schedules = await exploreAll(make);
    if (schedules <= moreThan) throw new Error(`expected more than ${moreThan} schedules; there are ${schedules}`);
  }
}
async function exploreAll(make) {
  const done = /* @__PURE__ */ new Map();
  const branches = [];
  for (; ; ) {
    let schedules = await run(make, branches, { known: (state) => done.get(state) });
    for (; ; ) {
      const last = branches.at(-1);
      if (!last) return schedules;
      last.schedules += schedules;
      if (++last.choice < last.choices) break;
      done.set(last.state, last.schedules);
      schedules = last.schedules;
      branches.pop();
    }
  }
}
async function exploreSome(make, count2) {
  const pick = randomFrom(1);
  for (let i = 0; i < count2; i++) await run(make, [], { pick });
}
async function run(make, branches, { known: known2, pick = () => 0 } = {}) {
  const world = await make();
  const taken = [];
  const choices = [];
  try {
    for (let depth = 0; ; depth++) {
      await (world.quiet?.() ?? quiet());
      if (depth >= branches.length || !known2) await world.check();
      const steps = world.steps();
      if (steps.length === 0) {
        await world.end();
        return 1;
      }
      if (depth === branches.length) {
        const state = world.state();
        const schedules = known2?.(state);
        if (schedules !== void 0) return schedules;
        branches.push({ state, choices: steps.length, choice: pick(steps.length), schedules: 0 });
      }
      const { choice } = branches[depth];
      const step = steps[choice];
      if (!step) throw new Error("the same steps led to another state: the world is not deterministic");
      taken.push(step.name);
      choices.push(choice);
      await step.take();
    }
  } catch (error) {
    const steps = taken.map((name, i) => `  ${i + 1}. ${name}`).join("\n");
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`${why}
after
${steps}
SLUICE_SCHEDULE=${choices.join(".")}`, { cause: error });
  } finally {
    await world.close?.();
  }
}
async function quiet(turns = 1) {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
}

// test/deep/interleavings/support/network.ts
var Network = class {
  #calls = /* @__PURE__ */ new Set();
  #inOrder;
  #lateReplies;
  #faults;
  /** The events at each server and client, in order, which determine the whole state. */
  #histories = /* @__PURE__ */ new Map();
  #fates = /* @__PURE__ */ new Map();
  constructor({ faults = 0, inOrder = false, lateReplies = false } = {}) {
    this.#faults = faults;
    this.#inOrder = inOrder;
    this.#lateReplies = lateReplies;
  }
  get isQuiet() {
    return this.#calls.size === 0;
  }
  /** Sends a call. Names are unique. */
  call(client, server, name, run2) {
    return new Promise((resolve, reject) => {
      if (this.#fates.has(name)) throw new Error(`two calls are named ${name}`);
      this.#fates.set(name, { ran: false, failed: false, answer: void 0 });
      const call = {
        client,
        server,
        name,
        state: "sent",
        run: run2,
        answer: void 0,
        refusal: void 0,
        resolve,
        reject
      };
      this.#calls.add(call);
    });
  }
  /** Records an event beside calls, such as a step of a clock or the end of a process. */
  note(place, what) {
    const history = this.#histories.get(place);
    if (history) history.push(what);
    else this.#histories.set(place, [what]);
  }
  fate(name) {
    return this.#fates.get(name);
  }
  steps() {
    const steps = [];
    const asked = /* @__PURE__ */ new Set();
    const answered = /* @__PURE__ */ new Set();
    for (const call of this.#calls) {
      const { client, server, name, state } = call;
      const connection = `${client} ${server}`;
      if (state === "ran") {
        if (this.#isBehind(answered, connection)) continue;
        steps.push({ name: `the reply to ${name} arrives`, take: () => this.#answer(call) });
        if (this.#faults > 0)
          steps.push({ name: `the reply to ${name} is lost`, take: () => this.#fail(call, "unreported") });
        continue;
      }
      answered.add(connection);
      if (this.#isBehind(asked, connection)) continue;
      const isLate = state === "late";
      const runs = `${server} runs ${name}`;
      if (this.#lateReplies || isLate) steps.push({ name: runs, take: () => this.#run(call) });
      else steps.push({ name: `${runs} and replies`, take: () => this.#run(call).then(() => this.#answer(call)) });
      if (!isLate && this.#faults > 0) {
        if (!this.#lateReplies) {
          const take = () => this.#run(call).then(() => this.#fail(call, "unreported"));
          steps.push({ name: `${runs} and the reply is lost`, take });
        }
        steps.push({ name: `${name} is lost`, take: () => this.#fail(call, "lost") });
        steps.push({
          name: `the caller of ${name} gives up, and the call continues`,
          take: () => this.#fail(call, "late")
        });
      }
    }
    return steps;
  }
  state() {
    const histories = [...this.#histories].map(([place, history]) => `${place}: ${history.join(", ")}`);
    return histories.sort().join("\n");
  }
  #isBehind(seen, connection) {
    if (!this.#inOrder) return false;
    const isBehind = seen.has(connection);
    seen.add(connection);
    return isBehind;
  }
  async #run(call) {
    const { server, name, state } = call;
    this.note(server, name);
    const fate = this.#fates.get(name);
    fate.ran = true;
    try {
      fate.answer = call.answer = await call.run();
    } catch (error) {
      call.refusal = error;
    }
    if (state === "late") this.#calls.delete(call);
    else call.state = "ran";
  }
  #answer(call) {
    this.#calls.delete(call);
    this.note(call.client, call.name);
    if (call.refusal) call.reject(call.refusal);
    else call.resolve(call.answer);
  }
  #fail(call, how) {
    this.#faults--;
    this.note(call.client, `${call.name} ${how}`);
    this.#fates.get(call.name).failed = true;
    if (how === "late") call.state = "late";
    else this.#calls.delete(call);
    call.reject(new Error(`${call.name}: ${how}`));
  }
};

// test/deep/interleavings/support/kept-world.ts
var LIMIT2 = 100;
var OWN = 4;
var OTHERS = 3;
var KEEP_MS = 1e3;
var KeptWorld = class _KeptWorld {
  #options;
  #network;
  #stores;
  #limits;
  #parts;
  #done = [];
  #id = "";
  #now = 1e12;
  #isOver = false;
  #broken;
  #observer;
  constructor(options) {
    this.#options = options;
    this.#network = new Network(options);
    const { storeOf = (_, clock) => memoryStore({ clock }) } = options;
    const slots = Array.from({ length: options.slots }, (_, slot) => slot);
    this.#stores = slots.map((slot) => storeOf(slot, () => this.#now + slot * 12345));
    this.#limits = slots.map(
      (slot) => fixedWindow({ limit: LIMIT2, window: "1h", unit: "tokens", key: keyed(`kind-${slot}`, (key) => key) })
    );
    this.#parts = slots.map(() => ({ used: OTHERS + OWN, isTaken: false, isReset: false }));
  }
  /** A world in which the charge is made. */
  static async make(options) {
    const world = new _KeptWorld(options);
    const limiter = world.#limiterOf((request, slot) => world.#stores[slot].decide(request));
    const key = "ann";
    await limiter.consume(key, { cost: { tokens: OTHERS } });
    const { id } = await limiter.consume(key, { cost: { tokens: OWN } });
    world.#id = id;
    for (const [p, deeds] of options.processes.entries()) {
      world.#live(`process ${p + 1}`, deeds).catch((error) => {
        world.#broken = error;
      });
    }
    if (options.resets) {
      world.#network.call("admin", "slot 1", "reset", () => world.#reset()).catch(() => {
      });
    }
    return world;
  }
  steps() {
    const steps = this.#network.steps();
    if (this.#options.ends && !this.#isOver && steps.length > 0) {
      steps.push({ name: "the id ends", take: () => this.#end() });
    }
    return steps;
  }
  state() {
    return this.#network.state();
  }
  async quiet() {
    await quiet(2);
  }
  async check() {
    if (this.#broken) throw this.#broken;
    const used2 = await this.#used();
    const expected = this.#parts.map((part3) => part3.used);
    if (used2.join() !== expected.join()) throw new Error(`expected ${expected} units to be used, got ${used2}`);
  }
  async end() {
    for (const { name, deed, outcome } of this.#done) {
      if (outcome === void 0) throw new Error(`${name} has no outcome`);
      const isOpen2 = this.#parts.some(({ isTaken, isReset }) => !isTaken && !isReset);
      if (isOpen2 && !this.#isOver) throw new Error(`${name}: ${JSON.stringify(deed)} is ${outcome}, and a part is open`);
      if (outcome === "unknown" && !this.#isOver && !this.#parts.every(({ isReset }) => isReset)) {
        throw new Error(`${name} does not know a charge that is there`);
      }
    }
    const firsts = this.#done.filter(({ outcome }) => outcome === "done").length;
    if (firsts > 1 && this.#options.slots === 1) throw new Error(`${firsts} changes of one part are done`);
    await this.check();
  }
  async close() {
    for (const store of this.#stores) await store.close();
  }
  async #live(process2, deeds) {
    for (const [i, deed] of deeds.entries()) {
      const done = { name: `${process2}, change ${i + 1}`, deed, outcome: void 0, tries: 0 };
      this.#done.push(done);
      while (done.outcome === void 0) await this.#try(process2, done);
    }
  }
  async #try(process2, done) {
    const name = `${done.name}, try ${++done.tries}`;
    const call = (slot, what, run2) => this.#network.call(process2, `slot ${slot + 1}`, `${name}: ${what} on slot ${slot + 1}`, run2);
    const limiter = this.#limiterOf(
      (request, slot) => call(slot, `op ${request.op}`, () => this.#change(request, slot)),
      (slot) => {
        const read = async () => await this.#stores[slot]?.keptCharge?.("kept", this.#id) ?? [];
        return this.#options.readsByNetwork ? call(slot, "read", read) : read();
      }
    );
    try {
      const { deed } = done;
      done.outcome = await (deed === "refund" ? limiter.refund(this.#id) : limiter.settle(this.#id, { tokens: deed.settle }));
    } catch (error) {
      if (!/: (lost|late|unreported)$/.test(String(error))) throw error;
    }
  }
  /** Executes a change of one part, and compares its outcome with the one that the history of the slot requires. */
  async #change(request, slot) {
    const part3 = this.#parts[slot];
    const { isTaken, isReset } = part3;
    const result = await this.#stores[slot].decide(request);
    const expected = this.#isOver || isReset ? "unknown" : isTaken ? "done before" : "done";
    if (result.outcome !== expected) {
      this.#broken = new Error(`a change on slot ${slot + 1} is ${result.outcome}, expected ${expected}`);
    }
    if (expected === "done") {
      part3.isTaken = true;
      const isDebit = request.charge !== void 0 && request.op === DEBIT2;
      part3.used += isDebit ? request.costs[0] : -request.costs[0];
    }
    return result;
  }
  async #reset() {
    const part3 = this.#parts[0];
    const [store] = this.#stores;
    await store.reset(await this.#planOf(store), ["kind-0=ann"]);
    part3.isReset = true;
    part3.used = 0;
  }
  /** The plan of the charge on a store, as its record has it. */
  async #planOf(store) {
    const [charge2] = await store.keptCharge?.("kept", this.#id) ?? [];
    if (!charge2) throw new Error("expected the record of the charge");
    const { plan, keep } = charge2.request;
    return { ...plan, keeps: keep };
  }
  #end() {
    this.#isOver = true;
    this.#now += KEEP_MS;
    for (const slot of this.#stores.keys()) this.#network.note(`slot ${slot + 1}`, "the id ends");
  }
  async #used() {
    this.#observer ??= this.#limiterOf((request, slot) => this.#stores[slot].decide(request));
    const { limits } = await this.#observer.peek("ann", { cost: { tokens: 0 } });
    return limits.map(({ remaining: remaining2 }) => LIMIT2 - remaining2);
  }
  #limiterOf(decide, read) {
    const slotOf = (identity) => Number(/^kind-(\d)=/.exec(identity ?? "")?.[1]);
    const slots = [...this.#stores.keys()];
    const store = {
      decide: (request) => {
        const { identities, keep } = request;
        if (identities.length === 1) return decide(request, slotOf(identities[0]));
        const named = keep && { ...request, keep: { ...keep, id: keep.id ?? `${"x".repeat(22)}` } };
        return decideAcrossSlots(named ?? request, slots, async (part3, slot) => decide(part3, slot));
      },
      keptCharge: async () => (await Promise.all(slots.map((slot) => read?.(slot) ?? []))).flat()
    };
    return createLimiter({
      name: "kept",
      limits: this.#limits,
      charges: { keep: KEEP_MS },
      store
    });
  }
};
var DEBIT2 = 6;

// .tmp/quick/inter.ts
var cases = [
  { slots: 3, processes: [[{ settle: 1 }], ["refund"]] },
  { slots: 3, processes: [["refund"], [{ settle: 2 }]], faults: 1 },
  { slots: 3, processes: [["refund"], [{ settle: 9 }]], resets: true },
  { slots: 3, processes: [["refund"], [{ settle: 9 }]], ends: true },
  { slots: 1, processes: [[{ settle: 1 }, "refund"], ["refund", { settle: 9 }]], resets: true, ends: true, faults: 1 }
];
for (const c of cases) {
  const t = performance.now();
  let n = 0;
  try {
    await explore(() => {
      n++;
      return KeptWorld.make(c);
    }, Number(process.argv[2] ?? 1e9), ALL2);
    console.log("ok", JSON.stringify(c), n, Math.round(performance.now() - t));
  } catch (e) {
    console.log(String(e.message).slice(0, 1500), JSON.stringify(c), n, Math.round(performance.now() - t));
  }
}
