/** `@sluice/fastify/platform`: the parts with which adapters for frameworks on Fastify are made. */
export { FastifyContext } from './context.js'
export { enforcingFastify } from './enforcing.js'
