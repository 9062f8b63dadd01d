#!/usr/bin/env node
'use strict'
require('../dist/index.cjs').runAsProgram(require('../package.json').version)
