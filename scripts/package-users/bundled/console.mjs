// The page of the console, with its files, and its API, in each framework.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { consoleFor } from '@sluice/console'
import { consoleFor as expressConsole } from '@sluice/console/express'
import { consoleFor as fastifyConsole } from '@sluice/console/fastify'
import { consoleFor as koaConsole } from '@sluice/console/koa'
import { createLimiter, memoryStore } from '@sluice/core'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { main, responsesOf } from './support.mjs'

const store = memoryStore()
const limiters = [createLimiter({ name: 'mail', store, limit: 1, window: '1h' })]
const options = { store, limiters, authorize: () => ({ name: 'ann', may: /** @type {const} */ ('act') }) }

/** @param {import('node:http').Server} server @param {string} [path] */
async function serves(server, path = '') {
  const paths = ['/', '/app.js', '/app.css', '/api/nothing'].map((file) => path + file)
  const [page, program, style, api] = await responsesOf(server, ...paths)
  assert.match(String(page?.text), /<!doctype html>/i)
  assert(Number(program?.text.length) > 20_000)
  assert(Number(style?.text.length) > 2000)
  assert.equal(api?.status, 404)
  assert.match(String(api?.text), /"status":404/)
}

main(async () => {
  await serves(createServer(consoleFor(options)))
  await serves(createServer(express().use(expressConsole(options))))
  await serves(createServer(new Koa().use(koaConsole({ ...options, path: '/sluice' })).callback()), '/sluice')
  const app = fastify()
  await app.register(fastifyConsole(options), { prefix: '/sluice' })
  await app.ready()
  await serves(app.server, '/sluice')
})
