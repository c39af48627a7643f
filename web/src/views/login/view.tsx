import { useEffect, useState } from 'react'
import { Redirect } from 'wouter'
import { LoginForm } from '../../app/login'
import { useMe } from '../../lib/me'
import { type CodeHolder, holderOf, loggedIn, login, ownPath } from '../../lib/session'
import { Button, Loading, ProblemNote } from '../../ui'
import { Refused } from './refused'

const codeIn = (hash: string) => new URLSearchParams(hash.slice(1)).get('code') ?? ''

export default function Login() {
  const [problem, setProblem] = useState<unknown>()
  const [busy, setBusy] = useState(() => codeIn(location.hash) !== '')
  // A link with a code may be from anybody: the person confirms whom it logs in.
  const [asked, setAsked] = useState<{ code: string; holder: CodeHolder }>()
  const confirm = () => {
    if (!asked) return
    setBusy(true)
    login({ code: asked.code })
      .catch(setProblem)
      .finally(() => {
        setAsked(undefined)
        setBusy(false)
      })
  }
  const search = new URLSearchParams(location.search)
  const to = ownPath(search.get('to'))
  const refused = search.get('problem')
  const me = useMe()
  useEffect(() => {
    // An address with a code that is opened in this tab changes the fragment alone.
    const heard = () => {
      const code = codeIn(location.hash)
      if (!code) return
      // The history would keep the code.
      history.replaceState(history.state, '', location.pathname + location.search)
      setBusy(true)
      setProblem(undefined)
      setAsked(undefined)
      holderOf(code)
        .then((holder) => setAsked({ code, holder }))
        .catch(setProblem)
        .finally(() => setBusy(false))
    }
    heard()
    addEventListener('hashchange', heard)
    return () => removeEventListener('hashchange', heard)
  }, [])
  // Another tab, whose session ended, sent the person to an issuer here: it goes on.
  const back = search.has('done') ? me.data : undefined
  useEffect(() => {
    if (back) loggedIn(back)
  }, [back])
  if (busy || me.isPending) return <Loading what="the login" />
  if (asked) {
    const { name, role, tenant } = asked.holder
    return (
      <main className="login" id="main" tabIndex={-1}>
        <h1 className="title">Log in as {name}?</h1>
        <p>
          The link logs this browser in as <strong>{name}</strong> ({role}) of <strong>{tenant}</strong>. Go on only if
          you asked for it.
        </p>
        {me.data && (
          <p>
            You are logged in as <strong>{me.data.name}</strong> of <strong>{me.data.tenant}</strong>. That session
            ends.
          </p>
        )}
        <p>
          <Button kind="primary" onClick={confirm}>
            Log in as {name}
          </Button>{' '}
          <Button onClick={() => setAsked(undefined)}>Cancel</Button>
        </p>
      </main>
    )
  }
  if (me.data && problem === undefined) {
    return search.has('done') ? (
      <main className="login" id="main" tabIndex={-1}>
        <h1 className="title">You are logged in</h1>
        <p>Close this tab, and go on in the other one.</p>
      </main>
    ) : (
      <Redirect to={to} replace />
    )
  }
  return (
    <main className="login" id="main" tabIndex={-1}>
      <h1 className="title">Log in to Countersign</h1>
      {problem !== undefined ? (
        <ProblemNote error={problem} what="The code did not log you in" />
      ) : (
        refused && <Refused code={refused} />
      )}
      <LoginForm to={to} />
    </main>
  )
}
