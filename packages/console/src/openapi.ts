import { MAX_BODY_BYTES } from './body.js'
import type { Route } from './routes/route.js'
import { OWN_HEADER } from './safe/same-origin.js'

const PROBLEM = { $ref: '#/components/responses/Problem' }

/** Responses of every route, beside its own. */
const REFUSALS: Readonly<Record<string, string | typeof PROBLEM>> = Object.fromEntries(
  ['400', '403', '404', '408', '409', '413', '415', '429', '500', '501', '503', '507'].map((status) => [
    status,
    PROBLEM,
  ]),
)

/** The OpenAPI document of routes. */
export function openApi(routes: readonly Route[]): object {
  const paths = Object.fromEntries(
    routes.map((route) => [route.path, { [route.method.toLowerCase()]: operationOf(route) }]),
  )
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sluice console',
      version: '1.0.0',
      summary: 'Shows why clients are refused, and changes what they may.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '.', description: 'The path of the console.' }],
    security: [{}],
    paths,
    components: {
      responses: {
        Problem: {
          description: 'The request was not served: a problem document (RFC 9457) says why in a sentence.',
          content: { 'application/problem+json': { schema: PROBLEM_SCHEMA } },
        },
      },
    },
  }
}

const PROBLEM_SCHEMA = {
  type: 'object',
  required: ['type', 'title', 'status', 'detail'],
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    confirm: { type: 'string', description: 'What confirmed: true agrees to.' },
    retryAfterMs: { type: 'integer' },
  },
}

function operationOf({ id, summary, may, body, answer, type = 'application/json' }: Route): object {
  return {
    operationId: id,
    summary,
    'x-sluice-may': may,
    ...(body && {
      parameters: [{ name: OWN_HEADER, in: 'header', required: true, schema: { type: 'string', const: '1' } }],
      requestBody: {
        required: true,
        description: `UTF-8, at most ${MAX_BODY_BYTES} bytes, without content encoding.`,
        content: { 'application/json': { schema: body } },
      },
    }),
    responses: {
      200: { description: answer, content: { [type]: { schema: { type: 'object' } } } },
      ...REFUSALS,
    },
  }
}
