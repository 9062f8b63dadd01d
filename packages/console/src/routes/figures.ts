import type { HistoryBody } from '../figures/answers.js'
import { Stream } from '../reply.js'
import { object, route } from './route.js'

/** Ms since 1970, as a field of a body. */
const TIME = { type: 'integer', minimum: 0, maximum: 2 ** 48 - 1 } as const

export const FIGURES = [
  route({
    method: 'GET',
    path: '/api/figures',
    id: 'figures',
    summary: 'Live figures of every process that reports, and their sum.',
    may: 'read',
    answer: 'Decisions, refusals, decisions without the store, times, waiting requests and permits.',
    run: ({ figures }) => figures.live.read(),
  }),
  route<HistoryBody>({
    method: 'POST',
    path: '/api/figures/history',
    id: 'figuresHistory',
    summary: 'Figures of all processes by minutes of the last 7 days, or by hours of the last 90.',
    may: 'read',
    body: object(
      {
        from: { ...TIME, description: 'Ms since 1970, rounded down to a step.' },
        to: { ...TIME, description: 'Ms since 1970. At most 1,500 minutes or 2,200 hours after it.' },
        step: { type: 'string', enum: ['minute', 'hour'] },
      },
      'from',
      'to',
      'step',
    ),
    answer: 'Columns of numbers, with one for each step.',
    run: ({ figures, body }) => figures.history.read(body),
  }),
  route({
    method: 'GET',
    path: '/api/stream',
    id: 'stream',
    summary: 'Live figures each second, as lines of JSON, for up to an hour.',
    may: 'read',
    answer: 'Lines, each an object with a type: figures, problem, heartbeat, or end.',
    type: 'application/x-ndjson',
    run({ figures: { streams }, operator, ask }) {
      return new Stream({
        check: () => streams.check(operator),
        start: (response) => streams.open(response, operator, ask),
      })
    },
  }),
]
