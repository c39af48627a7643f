import { Problem } from '../lib/client'
import { copy } from '../lib/copy'
import { shown } from '../lib/text'
import { Button } from './button'
import { Icon } from './icon'

// advice says what to do about a problem.
function advice(error: unknown): string {
  if (!(error instanceof Problem)) return 'The server could not be reached. Check the connection, and try again.'
  switch (error.status) {
    case 401:
      return 'Log in again.'
    case 403:
      return 'Ask a person with a role that allows it.'
    case 404:
      return 'It does not exist, or you have no access to it.'
    case 409:
      return 'It changed since you loaded it. Reload it.'
    case 410:
      return 'It is too late for this step.'
    case 412:
      return 'Somebody else changed it. Reload it.'
    case 429:
      return error.retryAfter ? `Try again in ${error.retryAfter} s.` : 'Try again in a moment.'
  }
  return error.status >= 500 ? 'Try again. If the problem persists, give the request id to your administrator.' : ''
}

// ProblemNote shows a problem where it happened: what, why, what to do, and the id under which the server's log has it.
// With whole it is all of a view, and its title is the view's.
export function ProblemNote({
  error,
  onRetry,
  what,
  whole,
}: {
  error: unknown
  onRetry?: () => void
  what?: string
  whole?: boolean
}) {
  const problem = error instanceof Problem ? error : undefined
  const Heading = whole ? 'h1' : 'strong'
  const title = problem ? problem.message : 'No answer'
  return (
    <div className="problem" role="alert">
      <Icon name="triangle" />
      <div>
        <Heading>
          {what ? `${what}: ` : ''}
          {shown(title)}
        </Heading>
        {problem?.detail && <p>{shown(problem.detail)}</p>}
        {problem && problem.errors.length > 0 && (
          <ul>
            {problem.errors.map((one, at) => (
              <li key={at}>
                <code>{shown(one.pointer)}</code> {shown(one.message)}
              </li>
            ))}
          </ul>
        )}
        <p className="muted">{advice(error)}</p>
        <p className="row">
          {onRetry && (
            <Button icon="refresh" onClick={onRetry}>
              Try again
            </Button>
          )}
          {problem?.requestID && (
            <Button kind="quiet" icon="copy" onClick={() => void copy(problem.requestID)}>
              Copy the request id
            </Button>
          )}
        </p>
      </div>
    </div>
  )
}
