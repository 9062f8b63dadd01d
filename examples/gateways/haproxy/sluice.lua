-- Asks a decider of Sluice about each request. Needs HAProxy 2.5 or later, built with Lua.
--
--   lua-load sluice.lua                        in the section `global`
--   http-request lua.sluice <url> <mode>       mode: `closed` refuses while the decider is away, `open` admits
--
-- Beside it, in the same frontend, for admitted requests:
--   http-response set-header RateLimit %[var(txn.sluice_ratelimit)] if { var(txn.sluice_ratelimit) -m found }

-- Longer than the decider waits for Redis, and short enough for a client to wait, in ms.
local TIMEOUT_MS = 2000

-- Not for the decider: what belongs to one connection, what tells of the body, which stays here, and what is set below.
local LEFT_OUT = {
  ["connection"] = true, ["keep-alive"] = true, ["proxy-connection"] = true, ["te"] = true, ["trailer"] = true,
  ["transfer-encoding"] = true, ["upgrade"] = true, ["expect"] = true, ["content-length"] = true, ["host"] = true,
  ["x-original-method"] = true, ["x-original-uri"] = true, ["x-original-host"] = true, ["x-original-for"] = true,
}

-- A decider that is away is asked by one request at a time, this often, in seconds: HAProxy tries to connect for some seconds.
local ASK_AGAIN_AFTER = 1
local is_away, ask_again_at = false, 0

-- Of the decider's answer, for the client.
local TOLD = { "ratelimit", "ratelimit-policy", "retry-after", "cache-control", "content-type" }

local function described(txn)
  local headers = {}
  for name, values in pairs(txn.http:req_get_headers()) do
    if not LEFT_OUT[name] then
      headers[name] = {}
      for i, value in pairs(values) do headers[name][i + 1] = value end
    end
  end
  headers["x-original-method"] = { txn.f:method() }
  headers["x-original-uri"] = { txn.f:pathq() }
  headers["x-original-host"] = { txn.f:req_fhdr("host") or "" }
  -- The address of the connection, whatever headers say.
  headers["x-original-for"] = { txn.f:src() }
  local token = os.getenv("SLUICE_TOKEN")
  if token then headers["x-sluice-token"] = { token } end
  return headers
end

-- HAProxy's client leaves out what is beyond 101 lines of headers, silently: the decider must see all that the app sees.
local MOST_LINES = 95

local function has_too_many_lines(txn)
  local lines = 0
  for _, values in pairs(txn.http:req_get_headers()) do
    for _ in pairs(values) do lines = lines + 1 end
  end
  return lines > MOST_LINES
end

-- haproxy.cfg refuses what is not marked so.
local function admit(txn)
  txn:set_var("txn.sluice_admitted", "1")
end

local function refuse(txn, status, headers, body)
  local reply = txn:reply({ status = status })
  for name, value in pairs(headers) do reply:add_header(name, value) end
  reply:set_body(body)
  txn:done(reply)
end

local function first(response, name)
  local values = response.headers and response.headers[name]
  return values and values[0]
end

-- The decider's answer; nil while it is away.
local function asked(txn, url)
  local now = core.now().sec
  if is_away and now < ask_again_at then return nil end
  ask_again_at = now + TIMEOUT_MS / 1000 + ASK_AGAIN_AFTER
  local response = core.httpclient():get({ url = url, headers = described(txn), timeout = TIMEOUT_MS })
  local status = response and response.status or 0
  -- HAProxy answers by itself for a server that it cannot reach, or that takes too long.
  is_away = status == 0 or ((status == 502 or status == 503 or status == 504) and first(response, "x-sluice-decided-by") == nil)
  if not is_away then return response end
  ask_again_at = core.now().sec + ASK_AGAIN_AFTER
  return nil
end

core.register_action("sluice", { "http-req" }, function(txn, url, mode)
  if has_too_many_lines(txn) then
    return refuse(txn, 431, { ["content-type"] = "text/plain" }, "expected fewer headers\n")
  end
  local response = asked(txn, url)
  if not response and mode == "open" then return admit(txn) end
  -- What is no decision, such as an answer that the configuration is wrong, refuses in both modes.
  if not response or first(response, "x-sluice-decided-by") == nil then
    local body = '{"type":"about:blank","title":"Service Unavailable","status":503}'
    local headers = { ["content-type"] = "application/problem+json", ["cache-control"] = "no-store", ["retry-after"] = "1" }
    return refuse(txn, 503, headers, body)
  end
  if response.status >= 200 and response.status < 300 then
    for _, name in ipairs({ "ratelimit", "ratelimit-policy" }) do
      local value = first(response, name)
      if value then txn:set_var("txn.sluice_" .. name:gsub("-", "_"), value) end
    end
    return admit(txn)
  end
  local headers = {}
  for _, name in ipairs(TOLD) do headers[name] = first(response, name) end
  refuse(txn, response.status, headers, response.body or "")
end, 2)
