// One server in a separate process.
import { serve } from '../contestants/http.js'
import { answer } from '../lib/child.js'

answer({
  serve,
  cpuUs() {
    const { user, system } = process.cpuUsage()
    return user + system
  },
})
