import type { Schemas } from '../../lib/client'
import { Icon } from '../../ui'

type Code = Schemas['ProblemCode']

interface Words {
  what: string
  hint: string
}

// words says what each problem with which the server sends a browser back to the login means, and what to do about it.
const words: Partial<Record<Code, Words>> = {
  login_refused: {
    what: 'The login was refused',
    hint:
      'Your organisation’s login was refused, or its answer was not valid. Try again. ' +
      'If the problem persists, ask your administrator to check the server’s log.',
  },
  login_expired: {
    what: 'The login took too long',
    hint: 'It took more than ten minutes, or it was begun in another browser. Log in again from here.',
  },
  no_role: {
    what: 'You have no access here',
    hint: 'Your account is known, but has no role here. Ask an administrator of your organisation for one.',
  },
  no_domain: {
    what: 'You have no access here',
    hint:
      'Your account has no verified e-mail address of a domain that may log in here. ' +
      'Ask an owner which accounts may.',
  },
  account_disabled: {
    what: 'Your account is disabled here',
    hint: 'Ask an administrator of your organisation to enable it.',
  },
  issuer_unavailable: {
    what: 'Your organisation’s login does not answer',
    hint: 'Try again in a moment. A token or a one-time code works meanwhile.',
  },
  no_public_url: {
    what: 'Nobody can log in this way yet',
    hint: 'The server’s address is not configured. Ask your administrator to set COUNTERSIGN_PUBLIC_URL.',
  },
  not_found: {
    what: 'Unknown login',
    hint: 'This provider is not set up for logins in a browser. Choose another one.',
  },
  internal: { what: 'The server failed', hint: 'Try again. If the problem persists, tell your administrator.' },
}

const other: Words = {
  what: 'You were not logged in',
  hint: 'Try again. If the problem persists, ask your administrator to check the server’s log.',
}

// Refused says why a login ended without a session. The code comes from the address, which anybody can write: it
// chooses a sentence, and is not shown.
export function Refused({ code }: { code: string }) {
  const { what, hint } = (Object.hasOwn(words, code) && words[code as Code]) || other
  return (
    <div className="problem" role="alert">
      <Icon name="triangle" />
      <div>
        <strong>{what}</strong>
        <p className="muted">{hint}</p>
      </div>
    </div>
  )
}
