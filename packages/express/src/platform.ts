/** `@sluice/express/platform`: the parts with which adapters for frameworks on Express are made. */
export { ExpressContext } from './context.js'
export { enforcingExpress } from './enforcing.js'
