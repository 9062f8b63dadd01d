import { render } from 'preact'
import './app.css'
import { openLink, Refused } from './api.js'
import { App } from './app.js'

const root = document.getElementById('app') as HTMLElement

openLink().then(
  () => render(<App />, root),
  (error: unknown) =>
    render(<App linkFailure={error instanceof Refused ? error.message : 'The link could not be opened.'} />, root),
)
