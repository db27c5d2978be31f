import { type ArgumentsHost, Catch, HttpException } from '@nestjs/common';
import { GraphQLError } from 'graphql';

const CODES = new Map([
  [401, 'UNAUTHENTICATED'],
  [403, 'FORBIDDEN'],
  [404, 'NOT_FOUND'],
]);

/** Tells clients of `UnauthorizedException`, `NotFoundException`, … All other errors are masked and logged. */
@Catch(HttpException)
export class HttpErrors {
  catch(error: HttpException, host: ArgumentsHost): GraphQLError {
    const status = error.getStatus();
    if (host.getType<string>() !== 'graphql' || status >= 500) throw error;
    const code = CODES.get(status) ?? 'BAD_USER_INPUT';
    return new GraphQLError(error.message, { extensions: { code } });
  }
}
