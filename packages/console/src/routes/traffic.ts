import type { TailBody, TrafficBody } from '../traffic/answers.js'
import { object, route } from './route.js'

const TIME = { type: 'integer', minimum: 0, maximum: 2 ** 48 - 1 } as const
const TEXT = { type: 'string', minLength: 1, maxLength: 512 } as const

/** Fields of a filter. */
const FILTER = {
  policy: {
    ...TEXT,
    description: 'Decisions by this limiter, or by this policy of a document. Of refusals, those that it refuses.',
  },
  reason: {
    ...TEXT,
    description:
      'admitted, left, refused for every refusal, the reason of one, or reported: and the reason of one that was only reported.',
  },
  path: { ...TEXT, description: 'A path as in an answer, without ids and names.' },
  network: { ...TEXT, description: 'A network as in an answer: /24 of IPv4, /48 of IPv6.' },
  client: { type: 'string', minLength: 1, maxLength: 32, description: 'The id of a client, as in an answer.' },
} as const

export const TRAFFIC = [
  route<TrafficBody>({
    method: 'POST',
    path: '/api/traffic',
    id: 'traffic',
    summary:
      'Where requests come from: the policies, reasons, paths, networks and clients with the most decisions or refusals.',
    may: 'read',
    body: object(
      {
        from: { ...TIME, description: 'Ms since 1970. Rounded down to a minute; beyond two hours to an hour.' },
        to: { ...TIME, description: 'Ms since 1970. At most 24 hours after from.' },
        by: { type: 'string', enum: ['decisions', 'refused'], description: 'The order; decisions without it.' },
        top: { type: 'integer', minimum: 1, maximum: 50, description: 'Entries of each kind; 10 without it.' },
        ...FILTER,
      },
      'from',
      'to',
    ),
    answer:
      'Entries with their decisions and refusals, never too high, and the most by which they are too low. The id of a client in a filter resolves for a week.',
    run: ({ traffic, body }) => traffic.read(body),
  }),
  route({
    method: 'GET',
    path: '/api/near',
    id: 'near',
    summary: 'Clients that have used 80 % of a limit or more.',
    may: 'read',
    answer: 'Clients with the share of the limit that they had used when they were seen last.',
    run: ({ traffic }) => traffic.near(),
  }),
  route<TailBody>({
    method: 'POST',
    path: '/api/tail',
    id: 'tail',
    summary: 'A sample of the decisions of the last seconds, up to 50 a second of each process. Ask each second.',
    may: 'read',
    body: object({ after: { ...TIME, description: 'after of the answer before.' }, ...FILTER }),
    answer: 'Decisions, newest first, and the share of all that these are.',
    run: ({ traffic, body }) => traffic.tail(body),
  }),
]
