// Types of packages without their own, as far as they are used here.

declare module '@fastify/rate-limit/store/RedisStore.js' {
  import type { Redis } from 'ioredis'

  interface Hits {
    current: number
    ttl: number
  }
  class RedisStore {
    constructor(continueExceeding: boolean, exponentialBackoff: boolean, redis: Redis)
    incr(key: string, done: (error: Error | null, hits: Hits) => void, windowMs: number, limit: number): void
  }
  export default RedisStore
}

declare module '@fastify/rate-limit/store/LocalStore.js' {
  interface Hits {
    current: number
    ttl: number
  }
  class LocalStore {
    constructor(continueExceeding: boolean, exponentialBackoff: boolean, cache: number)
    incr(key: string, done: (error: Error | null, hits: Hits) => void, windowMs: number, limit: number): void
  }
  export default LocalStore
}

declare module 'koa-ratelimit/limiter/memory.js' {
  class MemoryLimiter {
    constructor(options: { id: string; db: Map<string, unknown>; max: number; duration: number })
    get(): Promise<{ remaining: number }>
  }
  export default MemoryLimiter
}
