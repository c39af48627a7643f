import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useId, useState } from 'react'
import { get } from '../lib/client'
import { login } from '../lib/session'
import { shown } from '../lib/text'
import { Button, Field, ProblemNote } from '../ui'

interface Options {
  organisation: string | null
  providers: { name: string; label: string; login_url: string }[]
  idle_minutes: number
}

// withTarget adds the page to return to after the login to a provider's address.
function withTarget(loginURL: string, to: string) {
  return `${loginURL}${loginURL.includes('?') ? '&' : '?'}to=${encodeURIComponent(to)}`
}

// LoginForm has the ways to log in: issuers of the organisation, and a token or a one-time code.
export function LoginForm({ to, newTab }: { to: string; newTab?: boolean }) {
  const [named, setNamed] = useState('')
  const [organisation, setOrganisation] = useState('')
  const options = useQuery({
    queryKey: ['login-options', organisation],
    queryFn: ({ signal }) => get<Options>('/auth/options', { organisation }, signal),
    staleTime: 60_000,
  })
  const providers = options.data?.providers ?? []
  const target = newTab ? '_blank' : undefined
  return (
    <div className="stack">
      {providers.map((provider) => (
        <a
          key={provider.name}
          className="button primary"
          href={withTarget(provider.login_url, newTab ? '/login?done' : to)}
          target={target}
        >
          Log in with {shown(provider.label)}
        </a>
      ))}
      {options.isError && <ProblemNote error={options.error} onRetry={() => void options.refetch()} />}
      {options.data && providers.length === 0 && (
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault()
            setOrganisation(named.trim())
          }}
        >
          <Field
            label="Organisation"
            hint={
              organisation && !options.isFetching
                ? 'No login is set up for this organisation. Check the name, or use a token.'
                : 'The name leads to your organisation’s login.'
            }
          >
            {(wiring) => (
              <input
                {...wiring}
                value={named}
                onChange={(event) => setNamed(event.target.value)}
                autoComplete="organization"
                maxLength={63}
              />
            )}
          </Field>
          <Button type="submit" whyNot={named.trim() ? undefined : 'Type the name first.'} busy={options.isFetching}>
            Continue
          </Button>
        </form>
      )}
      <TokenForm open={options.isSuccess && providers.length === 0} />
    </div>
  )
}

// TokenForm takes a token or a code. Both stay in memory alone, and only until they are sent.
function TokenForm({ open }: { open: boolean }) {
  const [secret, setSecret] = useState('')
  const [problem, setProblem] = useState<unknown>()
  const [busy, setBusy] = useState(false)
  const id = useId()
  const send = async (event: FormEvent) => {
    event.preventDefault()
    const value = secret.trim()
    if (!value) return
    setBusy(true)
    setProblem(undefined)
    try {
      await login(value.startsWith('cs_code_') ? { code: value } : { token: value })
    } catch (error) {
      setProblem(error)
    } finally {
      setBusy(false)
      setSecret('')
    }
  }
  return (
    <details className="token" open={open}>
      <summary>With a token or a code</summary>
      <form className="stack" onSubmit={(event) => void send(event)}>
        <Field
          label="Token or one-time code"
          hint={
            <>
              Agents’ tokens are not accepted. <code>countersign ui</code> shows an address that logs you in.
            </>
          }
        >
          {(wiring) => (
            <input
              {...wiring}
              type="password"
              value={secret}
              onChange={(event) => setSecret(event.target.value)}
              autoComplete="off"
              spellCheck={false}
              name={id}
            />
          )}
        </Field>
        {problem !== undefined && <ProblemNote error={problem} what="Not logged in" />}
        <Button type="submit" whyNot={secret.trim() ? undefined : 'Paste a token or a code first.'} busy={busy}>
          Log in
        </Button>
      </form>
    </details>
  )
}
