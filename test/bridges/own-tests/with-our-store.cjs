// Loaded before the own tests of @fastify/rate-limit: its plugin gets our store, unless a test gives another.
const Module = require('node:module')
const { sluiceStore } = require('@sluice/bridges/fastify-rate-limit')
const { memoryStore } = require('@sluice/core')

const load = Module._load
const index = require.resolve('@fastify/rate-limit')
const plugin = require(index)
let registered = 0

/** The plugin with our store. The tests turn `Date`, so it is the clock. */
function withOurStore(app, settings) {
  const store =
    settings.store ?? sluiceStore({ name: `own-${registered++}`, store: memoryStore({ clock: () => Date.now() }) })
  return plugin(app, { ...settings, store })
}
// What fastify-plugin puts on a plugin.
for (const symbol of Object.getOwnPropertySymbols(plugin)) withOurStore[symbol] = plugin[symbol]
Object.assign(withOurStore, plugin, { default: withOurStore, fastifyRateLimit: withOurStore })

Module._load = function _load(request, parent, ...rest) {
  const isOurs = request.startsWith('.') && parent && Module._resolveFilename(request, parent) === index
  return isOurs ? withOurStore : load.call(this, request, parent, ...rest)
}
