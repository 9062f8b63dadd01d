// @ts-check
// GraphQL in Express: queries cost points, of which a tenant has 500 a minute and 2000 a day, all or none.
//
//   node graphql/express.js
//   curl -i localhost:3000/graphql -H 'Authorization: Bearer key-of-ann' --json '{ "query": "{ users { name } }" }'                  # 20 points
//   curl -i localhost:3000/graphql -H 'Authorization: Bearer key-of-ann' --json '{ "query": "{ users { posts { title } } }" }'       # 210
//   curl -i localhost:3000/graphql -H 'Authorization: Bearer key-of-ann' --json '{ "query": "{ users(first: 100) { posts { title } } }" }'  # never
import { fixedWindow, hashedKey, keyed, memoryStore, rateLimit, slidingLog } from '@sluice/express'
import express from 'express'
import { buildSchema, execute, GraphQLError, NoSchemaIntrospectionCustomRule, specifiedRules, validate } from 'graphql'
import { pageOf, readQuery } from './cost.js'

const schema = buildSchema(`
  type Query { users(first: Int = 10): [User!]! }
  type User { name: String! posts(first: Int = 10): [Post!]! }
  type Post { title: String! author: User! }
`)
/** @param {number} id */
const user = (id) => ({
  name: `user ${id}`,
  posts: (/** @type {any} */ args) =>
    Array.from({ length: pageOf(args) }, (_, n) => ({ title: `post ${n}`, author: () => user(id) })),
})
const rootValue = {
  users: (/** @type {any} */ args) => Array.from({ length: pageOf(args) }, (_, id) => user(id)),
}

// Your database: hashes of API keys, and whose they are.
const tenants = new Map([
  [hashedKey('key-of-ann'), 'ann'],
  [hashedKey('key-of-bob'), 'bob'],
  [hashedKey('key-of-cid'), 'cid'],
])
/** @param {express.Request} req */
const tenantOf = (req) => tenants.get(hashedKey(/^Bearer +(\S+)$/i.exec(req.get('authorization') ?? '')?.[1] ?? 'none'))

/** @type {express.RequestHandler} */
const authenticate = (req, res, next) => {
  if (tenantOf(req)) next()
  else res.set('WWW-Authenticate', 'Bearer').sendStatus(401)
}

/** @type {express.RequestHandler} */
const read = (req, res, next) => {
  try {
    res.locals.read = readQuery(schema, req.body)
  } catch (error) {
    if (!(error instanceof GraphQLError || error instanceof SyntaxError)) throw error
    // It is charged first, and answered then.
    res.locals.fault = error
  }
  next()
}

const limited = rateLimit({
  name: 'graphql',
  store: memoryStore(), // redisStore(client) where there is more than one process
  key: keyed('tenant', tenantOf),
  limits: [
    slidingLog({ name: 'minute', unit: 'points', limit: 500, window: '1m' }),
    fixedWindow({ name: 'day', unit: 'points', limit: 2000, window: '1d', anchor: 'first-request' }),
  ],
  // What cannot be read costs a point.
  cost: { points: (req) => req.res?.locals.read?.points ?? 1 },
})

/** @type {express.RequestHandler} */
const respond = async (_req, res) => {
  const { read, fault } = res.locals
  if (fault) {
    const message = fault instanceof GraphQLError ? fault.message : 'Expected JSON.'
    return void res.status(400).json({ errors: [{ message }] })
  }
  const { document, operationName, variables: variableValues, points } = read
  // Introspection returns much for few fields.
  const faults = validate(schema, document, [...specifiedRules, NoSchemaIntrospectionCustomRule], { maxErrors: 5 })
  if (faults.length > 0) return void res.status(400).json({ errors: faults })
  const { data, errors } = await execute({ schema, document, rootValue, operationName, variableValues })
  // Messages of errors that resolvers throw are not for clients.
  const shown = errors?.map((error) => (error.originalError ? { message: 'Internal error.', path: error.path } : error))
  res.json({ data, errors: shown, extensions: { cost: points } })
}

const app = express()
app.post('/graphql', authenticate, express.text({ type: 'application/json', limit: '16kb' }), read, limited, respond)

// Responses to unreadable requests show no internals.
/** @type {express.ErrorRequestHandler} */
const onError = (error, _req, res, next) => {
  if (res.headersSent) next(error)
  else res.sendStatus(error.status ?? 500)
}
app.use(onError)

const server = app.listen(Number(process.env.PORT ?? 3000), () => console.log('ready'))
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
