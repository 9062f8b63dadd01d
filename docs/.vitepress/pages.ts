/** Where the pages are: sources by their paths in the repository, and what the site calls them. */
export const PAGES: Readonly<Record<string, string>> = {
  'docs/api/:rest(.*)': 'api/:rest',
  'docs/:page': ':page',
  'SECURITY.md': 'security.md',
  'bench/results.md': 'benchmarks.md',
  'bench/what-is-left.md': 'benchmarks-missed.md',
  'bench/bridges.md': 'benchmarks-bridges.md',
}

/** Markdown of the repository that is no page. */
export const NO_PAGES = [
  '*/README.md',
  'README.md',
  'CHANGELOG.md',
  'CODE_OF_CONDUCT.md',
  'CONTRIBUTING.md',
  'ARCHITECTURE.md',
  '.*/**',
  'etc/**',
  'examples/**',
  'lua/**',
  'packages/**',
  'scripts/**',
  'test/**',
  'tools/**',
]

const page = (text: string, link: string) => ({ text, link })

/** Pages to read, by what they are about, in the order of the index. */
export const GUIDES = [
  {
    text: 'Start',
    items: [
      page('Get started', '/get-started'),
      page('Express', '/express'),
      page('Koa', '/koa'),
      page('Fastify', '/fastify'),
      page('NestJS', '/nestjs'),
      page('Without HTTP', '/without-http'),
      page('Calling other services', '/calling-other-services'),
      page('Stores for other limiters', '/bridges'),
      page('Examples and demo', '/examples'),
      page('Recipes', '/recipes'),
      page('Recipes: accounts and costs', '/recipes-accounts'),
      page('Recipes: senders and networks', '/recipes-networks'),
      page('The life of a request', '/lifecycle'),
      page('Why is a client refused?', '/why-refused'),
    ],
  },
  {
    text: 'Limits',
    items: [
      page('Choosing a limit', '/choosing-a-limit'),
      page('Choosing an algorithm', '/choosing-an-algorithm'),
      page('Windows of the clock and the calendar', '/windows'),
      page('Keys', '/keys'),
      page('Addresses and proxies', '/proxies'),
      page('Behind your host', '/behind-your-host'),
      page('Invalid requests', '/invalid-requests'),
      page('API plans and costs', '/api-plans'),
      page('Units', '/units'),
      page('Settle and meter', '/settle'),
      page('Charges that travel', '/charges'),
      page('Budgets of tokens', '/budgets-of-tokens'),
      page('GraphQL', '/graphql'),
      page('Counting by outcome', '/counting-by-outcome'),
      page('Bytes of requests', '/request-bytes'),
      page('Bytes of responses', '/response-bytes'),
      page('WebSockets', '/websockets'),
    ],
  },
  {
    text: 'Over the limit',
    items: [
      page('Responses and headers', '/responses-and-headers'),
      page('Custom responders', '/custom-responders'),
      page('Responders', '/responders'),
      page('Delays and queues', '/queues'),
      page('Turns', '/turns'),
      page('Requests in flight', '/requests-in-flight'),
    ],
  },
  {
    text: 'Abuse',
    items: [
      page('Login protection', '/login-protection'),
      page('Bans', '/bans'),
      page('Traps', '/traps'),
      page('Blocks and lists', '/blocks-and-lists'),
      page('Lists in files', '/list-files'),
      page('Blocks that last', '/lasting-blocks'),
      page('Inspect and erase identities', '/identities'),
      page('Console', '/console'),
    ],
  },
  {
    text: 'Policies',
    items: [
      page('Policies as data', '/policies'),
      page('Overrides', '/policy-overrides'),
      page('Changing policies', '/policy-changes'),
      page('Policies in PostgreSQL', '/policies-in-postgres'),
      page('Gateways and other languages', '/gateways'),
      page('The decider', '/decider'),
      page('Replay a log', '/simulate'),
      page('Record live traffic', '/recordings'),
    ],
  },
  {
    text: 'Production',
    items: [
      page('Production checklist', '/production-checklist'),
      page('Redis', '/redis'),
      page('Check Redis', '/doctor'),
      page('Fewer round trips', '/fewer-round-trips'),
      page('When Redis fails', '/when-redis-fails'),
      page('Functions that sleep', '/functions'),
      page('Metrics', '/metrics'),
      page('Operations', '/operations'),
      page('Logging', '/logging'),
      page('Events', '/events'),
      page('Testing your app', '/testing'),
      page('Security', '/security'),
    ],
  },
  {
    text: 'Migrating from',
    items: [
      page('express-rate-limit', '/migrating-from-express-rate-limit'),
      page('@fastify/rate-limit', '/migrating-from-fastify-rate-limit'),
      page('koa-ratelimit', '/migrating-from-koa-ratelimit'),
      page('@nestjs/throttler', '/migrating-from-nestjs-throttler'),
      page('rate-limiter-flexible', '/migrating-from-rate-limiter-flexible'),
      page('Others', '/migrating-from-others'),
    ],
  },
]

/** Pages to look something up in. */
export const LOOK_UP = [
  {
    text: 'Reference',
    items: [
      page('Options', '/options'),
      page('Console: routes and streams', '/console-reference'),
      page('Header formats', '/header-formats'),
      page('Features together', '/features-together'),
      page('Errors and warnings', '/errors'),
      page('Guarantees', '/guarantees'),
      page('Threats and defences', '/threats'),
      page('Limits of this version', '/limitations'),
      page('Glossary', '/glossary'),
      page('Card', '/card'),
      page('Module systems', '/module-systems'),
      page('Comparison', '/comparison'),
      page('Benchmarks', '/benchmarks'),
      page('API', '/api/'),
    ],
  },
  {
    text: 'Extending',
    items: [page('Writing an adapter', '/writing-an-adapter'), page('Writing a store', '/writing-a-store')],
  },
]

/** The pages that list rather than explain. */
export const REFERENCE: ReadonlySet<string> = new Set(LOOK_UP.flatMap(({ items }) => items.map(({ link }) => link)))
