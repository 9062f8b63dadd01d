import express from 'express'
import express4 from 'express4'
import type { AppFactory } from './app.js'
import { appsByEffort } from './by-effort.js'
import { expressApp } from './express.js'
import { fastifyApp } from './fastify.js'
import { koaApp } from './koa.js'

/** Every framework that the adapter contract runs on. */
export const FRAMEWORKS: Readonly<Record<string, AppFactory>> = appsByEffort({
  'Express 5': expressApp(express),
  'Express 4': expressApp(express4),
  Koa: koaApp,
  Fastify: fastifyApp,
})
