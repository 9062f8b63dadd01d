import { byKind, type GivenIdentity, IDENTITY, textOf } from '../identity/identity.js'
import { object, route } from './route.js'

export const CLIENT_IDS = [
  route<{ readonly identity: GivenIdentity }>({
    method: 'POST',
    path: '/api/id',
    id: 'id',
    summary: 'A random id of a client, for an address of its page. An operator is given 100 an hour.',
    may: 'read',
    body: object({ identity: IDENTITY }, 'identity'),
    answer: 'An id that resolves for a week, and for another one each time that it is opened.',
    run: async ({ clientIds, operator, body: { identity } }) => ({
      id: await clientIds.idOf(textOf(byKind(identity)), operator.name),
    }),
  }),
  route<{ readonly id: string }>({
    method: 'POST',
    path: '/api/client',
    id: 'client',
    summary: 'The client of an id.',
    may: 'read',
    body: object({ id: { type: 'string', minLength: 1, maxLength: 32, description: 'As in an answer.' } }, 'id'),
    answer: 'The client as it is counted; null for an id that resolves no more.',
    run: async ({ clientIds, body: { id } }) => ({ client: await clientIds.clientOf(id) }),
  }),
]
