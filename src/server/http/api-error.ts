/** A failure that the client is told about, in the shape that OpenAI's clients read. */

export type ApiErrorType =
  | "invalid_request_error"
  | "authentication_error"
  | "not_found_error"
  | "rate_limit_error"
  | "server_error"
  | "service_unavailable_error";

export interface ApiErrorDetails {
  readonly type?: ApiErrorType;
  readonly param?: string | null;
  readonly code?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: ApiErrorType;
    readonly param: string | null;
    readonly code: string | null;
  };
}

export class ApiError extends Error {
  readonly httpStatus: number;
  readonly type: ApiErrorType;
  readonly param: string | null;
  readonly code: string | null;
  readonly headers: Readonly<Record<string, string>>;

  constructor(httpStatus: number, message: string, details: ApiErrorDetails = {}) {
    super(message);
    this.name = "ApiError";
    this.httpStatus = httpStatus;
    this.type = details.type ?? (httpStatus >= 500 ? "server_error" : "invalid_request_error");
    this.param = details.param ?? null;
    this.code = details.code ?? null;
    this.headers = details.headers ?? {};
  }

  get body(): ErrorBody {
    const { message, type, param, code } = this;
    return { error: { message, type, param, code } };
  }

  toResponse(headers: Readonly<Record<string, string>> = {}): Response {
    return Response.json(this.body, { status: this.httpStatus, headers: { ...headers, ...this.headers } });
  }
}

/** The value of field `param` will not do. */
export function invalidParam(param: string, message: string, code: string | null = null): ApiError {
  return new ApiError(400, message, { param, code });
}

/** The request was understood and is for something this server does not do. */
export function unsupportedParam(param: string, message: string): ApiError {
  return new ApiError(400, message, { param, code: "unsupported_parameter" });
}

export function unavailable(message: string, retryAfterSeconds: number): ApiError {
  return new ApiError(503, message, {
    type: "service_unavailable_error",
    code: "service_unavailable",
    headers: { "Retry-After": String(retryAfterSeconds) },
  });
}
