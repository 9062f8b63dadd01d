// One server in a process of its own.
import { serve } from '../contestants/http.js'
import { answer } from '../lib/child.js'

answer({
  serve,
  cpuUs() {
    const { user, system } = process.cpuUsage()
    return user + system
  },
})
