import { ask } from '../api.js'
import { useShell } from '../context.js'
import { ActionDialog } from '../parts/dialog.js'

/** A button of the demo alone, for who may act. */
export function Traffic() {
  const { mayAct, open } = useShell()
  if (!mayAct) return null
  return (
    <button type="button" class="primary" onClick={() => open(<TrafficDialog />)}>
      Send traffic
    </button>
  )
}

function TrafficDialog() {
  return (
    <ActionDialog
      title="Send traffic to this demo"
      what={
        <>
          <p>For one minute, the demo sends requests to itself:</p>
          <ul>
            <li>ordinary clients, a few requests each;</li>
            <li>an attacker, who tries passwords until a ban refuses it;</li>
            <li>a bot that obeys Retry-After, and clients that wait in a queue.</li>
          </ul>
        </>
      }
      submit="Send"
      run={async () => {
        const { message } = await ask<{ message: string }>('/api/demo/traffic', {})
        return message
      }}
    />
  )
}
