import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { adviceHere, find } from '../../scripts/lib/system-program.js'
import { PROGRAMS } from '../../scripts/programs.js'
import { accepts } from './accepts.js'
import { startLeashed } from './leash.js'
import { ownDirectory, unprivileged } from './unprivileged.js'
import { until } from './until.js'

export interface Tomcat {
  stop(): Promise<void>
}

/**
 * Starts a real Tomcat whose one application runs this JSP for these patterns of servlets, with further attributes of
 * its connector. Resolves when it accepts connections on `port`. Fails, never skips, without Tomcat.
 */
export async function startTomcat(port: number, jsp: string, patterns: readonly string[], more = ''): Promise<Tomcat> {
  const script = find(PROGRAMS.tomcat)
  if (script === undefined) throw new Error(adviceHere([PROGRAMS.tomcat]))
  const dir = ownDirectory('sluice-tomcat-')
  for (const folder of ['conf', 'logs', 'temp', 'webapps/ROOT/WEB-INF', 'work'])
    mkdirSync(join(dir, folder), { recursive: true })
  // It runs without the rights of the user who runs the tests.
  for (const folder of ['logs', 'temp', 'work']) chmodSync(join(dir, folder), 0o777)
  writeFileSync(join(dir, 'conf/server.xml'), serverXml(port, more))
  writeFileSync(join(dir, 'conf/web.xml'), JSP_XML)
  writeFileSync(join(dir, 'webapps/ROOT/reached.jsp'), jsp)
  writeFileSync(join(dir, 'webapps/ROOT/WEB-INF/web.xml'), webXml(patterns))
  const home = dirname(dirname(script))
  const [program, args] = unprivileged(
    ...(['env', `CATALINA_HOME=${home}`, `CATALINA_BASE=${dir}`, `CATALINA_TMPDIR=${dir}/temp`] as const),
    ...['JAVA_OPTS=-Xmx128m', script, 'run'],
  )
  const server = await startLeashed(program, args, dir)
  try {
    await until('Tomcat accepts connections', () => accepts(port), { withinMs: 60_000 })
  } catch (error) {
    await server.end()
    throw new Error(`Tomcat did not start: ${server.errorText()}`, { cause: error })
  }
  return { stop: () => server.end() }
}

const serverXml = (port: number, more: string) => `<Server port="-1">
  <Service name="Catalina">
    <Connector port="${port}" address="127.0.0.1" protocol="HTTP/1.1" ${more}/>
    <Engine name="Catalina" defaultHost="localhost">
      <Host name="localhost" appBase="webapps" autoDeploy="false"/>
    </Engine>
  </Service>
</Server>
`

const NAMESPACE = 'xmlns="https://jakarta.ee/xml/ns/jakartaee" version="5.0"'
const JSP_XML = `<web-app ${NAMESPACE}>
  <servlet><servlet-name>jsp</servlet-name><servlet-class>org.apache.jasper.servlet.JspServlet</servlet-class></servlet>
  <servlet-mapping><servlet-name>jsp</servlet-name><url-pattern>*.jsp</url-pattern></servlet-mapping>
</web-app>
`
const webXml = (patterns: readonly string[]) => `<web-app ${NAMESPACE}>
  <servlet><servlet-name>reached</servlet-name><jsp-file>/reached.jsp</jsp-file></servlet>
  <servlet-mapping><servlet-name>reached</servlet-name>
    ${patterns.map((pattern) => `<url-pattern>${pattern}</url-pattern>`).join('')}
  </servlet-mapping>
</web-app>
`
