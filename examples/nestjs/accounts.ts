import { type CanActivate, type ExecutionContext, Injectable, UnauthorizedException } from '@nestjs/common';
import { GqlExecutionContext } from '@nestjs/graphql';
import type { Caller } from 'espalier';

/** Who sends an operation. */
export interface Account extends Caller {
  readonly name: string;
}

/** What resolvers get as `@Context()`. */
export interface AppContext {
  readonly caller: Account | null;
}

/** Finds the account of a token. Verify your tokens here; without this, nobody can sign in. */
@Injectable()
export class Accounts {
  async find(_token: string): Promise<Account | null> {
    return null;
  }
}

/** Admits callers who are signed in, over HTTP and over sockets. */
@Injectable()
export class SignedIn implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { caller } = GqlExecutionContext.create(context).getContext<AppContext>();
    if (caller === null) throw new UnauthorizedException('Sign in first');
    return true;
  }
}
