// Release: packages as users have them.
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { afterAll, expect, test } from 'vitest'

/** A gateway that gets two messages at a limit of one, and prints what their client gets. */
const PROGRAM = `
  import 'reflect-metadata'
  import { Module } from '@nestjs/common'
  import { NestFactory } from '@nestjs/core'
  import { ExpressAdapter } from '@nestjs/platform-express'
  import { WsAdapter } from '@nestjs/platform-ws'
  import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets'
  import { RateLimit, SluiceModule } from '@sluice/nestjs'
  import { WebSocket } from 'ws'

  class Chat {
    say() {
      return { event: 'said' }
    }
  }
  const say = Object.getOwnPropertyDescriptor(Chat.prototype, 'say')
  SubscribeMessage('say')(Chat.prototype, 'say', say)
  RateLimit({ limit: 1, window: '1m' })(Chat.prototype, 'say', say)
  WebSocketGateway()(Chat)
  class App {}
  Module({ imports: [SluiceModule.forRoot()], providers: [Chat] })(App)

  async function main() {
    const app = await NestFactory.create(App, new ExpressAdapter(), { logger: false })
    app.useWebSocketAdapter(new WsAdapter(app))
    await app.listen(0, '127.0.0.1')
    const client = new WebSocket('ws://127.0.0.1:' + app.getHttpServer().address().port)
    const seen = []
    client.on('open', () => ['say', 'say'].forEach((event) => client.send(JSON.stringify({ event }))))
    client.on('message', (message) => {
      if (seen.push(JSON.parse(message)) < 2) return
      console.log(JSON.stringify(seen))
      process.exit()
    })
  }
  void main()
`

/** Packages that Nest loads where they are installed, and that this app does without. */
const OPTIONAL = [
  '@nestjs/microservices',
  'class-validator',
  'class-transformer',
  '@fastify/*',
  '@nestjs/platform-socket.io',
]

/** What a program in CommonJS and an ES module lack of each other. */
const BANNERS = {
  cjs: "const __url = require('node:url').pathToFileURL(__filename).href",
  esm: "import { createRequire as __create } from 'node:module'; const require = __create(import.meta.url)",
}

const TESTS = fileURLToPath(new URL('..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'sluice-nest-bundle-'))
// Nest loads ws from the disk. Nothing else is there.
mkdirSync(join(folder, 'node_modules'))
symlinkSync(realpathSync(join(TESTS, 'node_modules/ws')), join(folder, 'node_modules/ws'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test.each(['cjs', 'esm'] as const)(
  'a refused message is one where everything is in one minified bundle, as %s',
  async (format) => {
    const outfile = join(folder, `app.${format === 'cjs' ? 'cjs' : 'mjs'}`)
    await build({
      stdin: { contents: PROGRAM, resolveDir: TESTS },
      outfile,
      bundle: true,
      minify: true,
      platform: 'node',
      format,
      conditions: ['module', ...(process.env.SLUICE_TEST === 'built' ? [] : ['@sluice/source'])],
      external: OPTIONAL,
      banner: { js: BANNERS[format] },
      define: format === 'cjs' ? { 'import.meta.url': '__url' } : {},
      logLevel: 'error',
    })
    const { stdout } = await promisify(execFile)(process.execPath, [outfile])
    expect(JSON.parse(stdout)).toContainEqual({
      event: 'exception',
      data: { status: 'error', message: 'Too Many Requests', statusCode: 429, retryAfter: expect.any(Number) },
    })
  },
  60_000,
)
